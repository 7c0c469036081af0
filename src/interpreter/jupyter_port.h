#pragma once

// Newer clients believe in an interpreter when something listens on 127.0.0.1:44771 (or $JUPYTER_PORT) inside
// the sandbox. Where no notebook server is configured, this is it.

#include "execd/core.h"
#include "http/server.h"

namespace osb::interpreter {

class JupyterPort {
 public:
  // With a notebook server that was named on the command line the port is its.
  JupyterPort(execd::Core& core, bool configured);
  // Listens as soon as the sandbox's environment is known. A port that somebody else has is left to them.
  io::Task<> run();

 private:
  static io::Task<> answer(http::Request& request, http::ResponseWriter& response);

  execd::Core& core_;
  bool configured_;
  http::Server server_;
};

}  // namespace osb::interpreter
