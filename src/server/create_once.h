#pragma once

// A create that is sent twice with the same key makes one sandbox: the second gets the first one's. Clients
// that lost the answer (a timeout, a restart of the server in the middle) may simply ask again.
//
// The key is stored with the id of the sandbox before anything of it is made. Whether it came to be, that id
// tells: a row is the answer; a row that is gone but has events was deleted or has expired since; neither
// means that the create never got to its end, and it is made now. So does a row on its way out without
// events.

#include <string>
#include <string_view>

#include "api/error.h"
#include "base/clock.h"
#include "sandbox/create_request.h"
#include "sandbox/principal.h"
#include "server/keyed_lock.h"
#include "store/repository.h"

namespace osb::server {

class CreateOnce {
 public:
  CreateOnce(io::Executor executor, store::Repository& store, const Clock& clock)
      : locks_(std::move(executor)), store_(store), clock_(clock) {}

  // Of the field Idempotency-Key; 400 for what is none.
  static api::ApiResult<> check_key(std::string_view key);

  // Those with the same key come one after the other: held until the create has its answer.
  using Guard = KeyedLock::Guard;
  io::Task<Guard> lock(const sandbox::Principal& who, const std::string& key);

  // The sandbox that an earlier request with this key has made, or null and `id` for the one to make. 409
  // when the key came with another request, or its sandbox is gone.
  struct Found {
    sandbox::SandboxPtr sandbox = {};
    std::string id = {};
  };
  io::Task<api::ApiResult<Found>> find(sandbox::Principal who, std::string key, std::string fingerprint);

 private:
  KeyedLock locks_;
  store::Repository& store_;
  const Clock& clock_;
};

}  // namespace osb::server
