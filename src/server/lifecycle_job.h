#pragma once

// Work that outlives the request which asked for it. The request waits for `done`.

#include "server/lifecycle.h"

namespace osb::server {

struct Lifecycle::Job {
  explicit Job(const io::Executor& executor) : done(executor) {}
  io::Event done;
  api::ApiResult<store::Sandbox> result = api::refuse({});
};

}  // namespace osb::server
