#pragma once

// The HTTP/1.1 client: one connection, one request at a time, bodies streamed both ways. Answers are read as
// strictly as requests are. Time limits are the caller's (io::with_deadline), except that a write which does
// not end is given up.

#include <memory>
#include <optional>
#include <string>

#include "http/message.h"
#include "http/server.h"
#include "io/stopped_time.h"

namespace osb::http {

class ClientConnection {
 public:
  explicit ClientConnection(io::Socket socket);
  ~ClientConnection();
  ClientConnection(ClientConnection&&) noexcept;
  ClientConnection& operator=(ClientConnection&&) noexcept;

  // `length`: a number (0 for no body), or nothing for a chunked body. Host is the caller's to set. With a
  // body the head goes out with its first bytes; write("") sends it alone, and read_head() sends it at the
  // latest.
  Task<Result<void>> send_head(RequestHead head, std::optional<uint64_t> length);
  Task<Result<void>> write(std::string_view bytes);
  // The same with bytes that wait in a pipe, which are moved and not copied. Only for a body with a length.
  Task<Result<void>> write_pipe(int pipe, size_t size);
  Task<Result<void>> finish();
  // Skips 1xx answers except 101. Reading and writing may go on at the same time.
  Task<Result<ResponseHead>> read_head();
  // From now on the answer's head may take so long, without the time in which the other side is stopped.
  // Beyond that read_head() ends with Code::cancelled, and head_is_late() says why. Nothing when it has come.
  void limit_head(io::Duration limit);
  bool head_is_late() const;
  BodyReader& body();       // of the answer; valid for as long as the connection
  bool reusable() const;    // the answer was read to its end and neither side closes
  bool alive();             // for idle connections: nothing arrived, not even the end
  bool touched() const;     // bytes of the current request may have reached the other side
  size_t buffered() const;  // bytes that body() can give without waiting, framing included
  // The whole body, when its length is known and all of it is here; nothing is taken else.
  std::optional<std::string> take_body();
  io::Socket& socket();
  // The other side may be stopped; the limits on writes and on the answer's head do not run meanwhile.
  void set_stopped_time(io::StoppedTime stopped);
  std::string take_buffered();  // after a 101: bytes that came behind the head

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Response {
  ResponseHead head;
  std::string body;
};
// One whole exchange on a connection.
Task<Result<Response>> fetch(ClientConnection& connection, RequestHead head, std::string body,
                             size_t body_limit = 16 << 20);

}  // namespace osb::http
