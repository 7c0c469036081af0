#pragma once

// The keeper's conversation with a fetcher: what it is told about registries and passwords, and hearing what
// it says.

#include <chrono>
#include <optional>

#include "image/pull_reference.h"
#include "registry/fetch_messages.h"
#include "registry/keeper.h"

namespace osb::registry {

struct FetchRights {
  std::optional<Login> login = {};  // of the request
  bool own_logins = true;           // without it: those of registry.auth_file
  bool mirrors = true;              // may be asked first
};
// What the configuration says about a registry, for this machine.
Result<FetchOrder> fetch_order(const KeeperSettings& settings, const image::PullReference& reference,
                               const FetchRights& rights);

class FetchTalk {
 public:
  // Borrows both. `cancel_fd` readable: Code::cancelled.
  FetchTalk(int socket, int cancel_fd) : socket_(socket), frames_(socket), cancel_fd_(cancel_fd) {}

  Result<void> send(std::string_view text) { return frames_.send(text); }
  // What it says, or its failure; nothing when it has said nothing for a minute. Code::timeout after `until`.
  Result<std::optional<FetchEvent>> hear(std::chrono::steady_clock::time_point until);

 private:
  int socket_;
  FrameSocket frames_;
  int cancel_fd_;
};

// This host's, not the image's: whoever hears of it cannot do anything about the image. A disk that is full
// stays Code::exhausted.
std::unexpected<Error> own_fault(Error error);

}  // namespace osb::registry
