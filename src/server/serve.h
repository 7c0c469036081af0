#pragma once

// The lifecycle server: everything behind `osb server`. The caller loads and checks the configuration, binds
// the listener, makes the runtimes and owns the loop.

#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "io/task.h"
#include "runtime/runtimes.h"
#include "server/config.h"
#include "server/endpoint_token.h"
#include "server/keys.h"

namespace osb::server {

struct Serve {
  Config config;
  EndpointTokens tokens;
  Fd listener;  // listening stream socket of any family
  runtime::Runtimes* runtimes = nullptr;
  io::Event* stop = nullptr;            // set() ends the service gracefully
  std::vector<Key> further_keys = {};   // of owners beside the default one; no configuration has any yet
  std::string identity = {};            // of this service, as its database has to know it; may be empty
  std::string isolation = {};           // the runtime's isolation tier, shown by /health
  std::function<void()> on_ready = {};  // recovery is done and requests are accepted
};

// Opens the store, recovers, serves until `stop`. Sandboxes live on when it returns. See is_permanent() for
// its errors.
io::Task<Result<void>> run(Serve options);

// Whether the next attempt to start would fail in the same way: somebody has to change something first.
bool is_permanent(const Error& error);

}  // namespace osb::server
