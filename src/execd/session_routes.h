#pragma once

// POST /session, POST /session/{id}/run, DELETE /session/{id}.

#include "execd/bash_session.h"
#include "execd/reply.h"
#include "execd/workers.h"
#include "http/router.h"

namespace osb::execd {

class SessionRoutes {
 public:
  SessionRoutes(Core& core, Workers& workers) : core_(core), workers_(workers) {}
  void add_to(http::Router& router);
  // Ends the session; false when there is none of that id.
  bool destroy(const std::string& id);

  static constexpr size_t kMaxSessions = 1024;

 private:
  io::Task<> create(http::Request& request, http::ResponseWriter& response);
  io::Task<> run(http::Request& request, http::ResponseWriter& response);
  io::Task<> remove(http::Request& request, http::ResponseWriter& response);

  Core& core_;
  Workers& workers_;
  std::map<std::string, std::shared_ptr<BashSession>> sessions_;
};

// A working directory that is made when it is missing: `text` expanded with the variables of commands.
io::Task<std::expected<std::string, ApiError>> ensure_cwd(const Core& core, Workers& workers,
                                                          std::string text);

}  // namespace osb::execd
