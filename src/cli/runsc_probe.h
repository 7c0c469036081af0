#pragma once

// runsc on this host, tried before a service is started with it: where it is, and with which of its platforms
// it runs a program here.

#include <string>

#include "base/fd.h"
#include "server/config.h"

namespace osb::cli {

struct FoundRunsc {
  Fd executable;
  std::string platform;
};

// Nothing is left of the attempts. The error says what runsc said of the last one.
Result<FoundRunsc> find_runsc(const server::Config& config);

}  // namespace osb::cli
