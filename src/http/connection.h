#pragma once

// One client connection of a server: requests one after the other, each answered before the next is read.

#include <string>

#include "http/head_parse.h"
#include "http/response_writer.h"
#include "http/server.h"
#include "http/stream_body.h"
#include "http/wire.h"

namespace osb::http {

class Connection {
 public:
  Connection(io::Socket socket, const Handler& handler, const ServerLimits& limits, const Ticks& ticks);

  Task<> run();

  // For the server's sweep and its close(); the run ends by itself soon after.
  Wire& wire() { return wire_; }
  bool idle() const { return idle_; }
  TimePoint idle_since() const { return idle_since_; }
  void stop();  // now when idle, else after the answer that is under way

 private:
  enum class Next { request, end };

  Task<Next> read_request();
  Task<> call_handler();
  Task<bool> settle();  // after the handler: true when another request may follow
  Task<> refuse(int status, std::string_view reason);
  Task<bool> drain_body();
  Task<> linger();

  const Handler& handler_;
  const ServerLimits& limits_;
  const Ticks& ticks_;
  Wire wire_;
  StreamBody body_;
  StreamWriter writer_;
  Request request_;
  std::string peer_;
  bool idle_ = true;
  bool stopping_ = false;
  bool clean_ = true;  // nothing unread is under way from the client
  TimePoint idle_since_{};
};

}  // namespace osb::http
