#pragma once

// One client connection of a server: requests one after the other, each answered before the next is read.

#include <string>

#include "http/head_parse.h"
#include "http/response_writer.h"
#include "http/server.h"
#include "http/stream_body.h"
#include "http/wire.h"

namespace osb::http {

class Connection final : private Sender {
 public:
  Connection(io::Socket socket, const Handler& handler, const ServerLimits& limits, const Ticks& ticks);

  Task<> run();

  // What has waited for too long is given up, and a handler that asked is told that its client has gone.
  void sweep(TimePoint now);
  // Who makes room for new ones: see Server. Busy connections never do.
  enum class Use { answered, idle, head, busy };
  Use use() const { return stopping_ ? Use::busy : use_; }
  TimePoint since() const { return since_; }  // about when the use began
  void stop();                                // ends now when idle, else after the answer that is under way
  void evict();                               // ends now; not while busy

 private:
  enum class Next { request, end };

  Task<Next> read_request();
  Task<> call_handler();
  bool settled() const;  // after the handler: nothing is left to do, another request may follow
  Task<bool> settle();   // whatever is left; true when another request may follow
  Task<> refuse(int status, std::string_view reason);
  Task<bool> drain_body();
  Task<Result<bool>> discard_body();
  Task<bool> gone() override;
  void set_use(Use use);
  Task<> linger();

  const Handler& handler_;
  const ServerLimits& limits_;
  const Ticks& ticks_;
  Wire wire_;
  StreamBody body_;
  StreamWriter writer_;
  Request request_;
  std::string peer_;
  Use use_ = Use::idle;
  bool stopping_ = false;
  bool clean_ = true;  // nothing unread is under way from the client
  TimePoint since_{};
};

}  // namespace osb::http
