#pragma once

// Work that outlives the request which asked for it. The request waits for `done`.

#include "server/lifecycle.h"

namespace osb::server {

struct Lifecycle::Job {
  explicit Job(const io::Executor& executor) : done(executor) {}
  io::Event done;
  Outcome<sandbox::Sandbox> result = sandbox::refuse({});

  void finish(Outcome<> outcome) {
    if (outcome) result = sandbox::Sandbox{};
    if (!outcome) result = sandbox::refuse(std::move(outcome.error()));
    done.set();
  }
  Outcome<> outcome() {
    if (!result) return sandbox::refuse(std::move(result.error()));
    return {};
  }
};

// The first half of a creation, under way.
struct Lifecycle::Preparing {
  explicit Preparing(const io::Executor& executor) : done(executor) {}
  io::Event done;
  runtime::Created<runtime::PreparedPtr> result = std::unexpected(runtime::CreateFailure{});
};

}  // namespace osb::server
