#pragma once

// POST /code, POST /code/context, GET/DELETE /code/contexts and /code/contexts/{id}. DELETE /code belongs to
// the commands, which ask interrupt() about ids that are not theirs.

#include "execd/daemon.h"
#include "interpreter/contexts.h"

namespace osb::interpreter {

class CodeRoutes {
 public:
  static constexpr size_t kMaxCode = 8 << 20;

  CodeRoutes(execd::Parts& parts, Contexts& contexts) : parts_(parts), contexts_(contexts) {}
  void add_to(http::Router& router);
  // False when `id` is no context.
  io::Task<bool> interrupt(std::string id);

 private:
  io::Task<> run(http::Request& request, http::ResponseWriter& response);
  io::Task<> run_command(std::string code, bool background, http::ResponseWriter& response);
  io::Task<> create(http::Request& request, http::ResponseWriter& response);
  io::Task<> list(http::Request& request, http::ResponseWriter& response);
  io::Task<> show(http::Request& request, http::ResponseWriter& response);
  io::Task<> remove(http::Request& request, http::ResponseWriter& response);
  io::Task<> remove_all(http::Request& request, http::ResponseWriter& response);

  std::string take_notice();

  execd::Parts& parts_;
  Contexts& contexts_;
  bool notice_taken_ = false;
};

}  // namespace osb::interpreter
