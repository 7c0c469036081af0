#pragma once

// TLS to a server: the system's trust store and, when one is named, the user's own authority. The certificate
// must be for the host that was asked for. Belongs to one loop of block_on().

#include <memory>

#include "cli/arguments.h"
#include "io/socket.h"
#include "tls/session.h"

namespace osb::cli {

class Security {
 public:
  // Reads the files the first time. What is given back speaks in the clear to us.
  io::Task<Result<io::Socket>> wrap(io::Socket plain, const std::string& host, const TlsFiles& files);

 private:
  std::shared_ptr<const tls::Trust> trust_;
};

}  // namespace osb::cli
