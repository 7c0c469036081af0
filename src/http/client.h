#pragma once

// The HTTP/1.1 client: one connection, one request at a time, bodies streamed both ways. ConnectionPool keeps idle ones.

#include <deque>
#include <memory>
#include <string>

#include "http/message.h"
#include "http/server.h"

namespace osb::http {

class ClientConnection {
 public:
  explicit ClientConnection(io::Socket socket);
  ~ClientConnection();
  ClientConnection(ClientConnection&&) noexcept;
  ClientConnection& operator=(ClientConnection&&) noexcept;

  // `length`: a number (0 for no body), or nothing for a chunked body. Host is the caller's to set.
  Task<Result<void>> send_head(RequestHead head, std::optional<uint64_t> length);
  Task<Result<void>> write(std::string_view bytes);
  Task<Result<void>> finish();
  Task<Result<ResponseHead>> read_head();  // skips 1xx answers
  BodyReader& body();                      // of the answer
  bool reusable() const;                   // the answer was read to its end and neither side closes
  io::Socket& socket();
  std::string take_buffered();             // after a 101: bytes that came behind the head

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct Response {
  ResponseHead head;
  std::string body;
};
// One whole exchange on a connection.
Task<Result<Response>> fetch(ClientConnection& connection, RequestHead head, std::string body, size_t body_limit = 16 << 20);

}  // namespace osb::http
