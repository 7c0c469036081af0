#pragma once

// POST /pty, GET and DELETE /pty/{id}, GET /pty/{id}/ws.

#include <map>

#include "execd/pty_session.h"
#include "execd/workers.h"
#include "http/router.h"
#include "http/websocket.h"

namespace osb::execd {

class PtyRoutes {
 public:
  PtyRoutes(Core& core, Workers& workers) : core_(core), workers_(workers) {}
  void add_to(http::Router& router);

  static constexpr size_t kMaxSessions = 1024;

 private:
  using SessionPtr = std::shared_ptr<PtySession>;
  io::Task<> create(http::Request& request, http::ResponseWriter& response);
  io::Task<> status(http::Request& request, http::ResponseWriter& response);
  io::Task<> remove(http::Request& request, http::ResponseWriter& response);
  io::Task<> connect(http::Request& request, http::ResponseWriter& response);
  io::Task<SessionPtr> find(http::Request& request, http::ResponseWriter& response);

  Core& core_;
  Workers& workers_;
  std::map<std::string, SessionPtr> sessions_;
};

}  // namespace osb::execd
