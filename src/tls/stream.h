#pragma once

// A TLS connection in a loop: what the session wants is awaited, nothing blocks. One read and one write at a
// time, which may overlap. After an error, a cancelled call included, it is of no use any more.

#include "io/socket.h"
#include "io/stream.h"
#include "tls/session.h"

namespace osb::tls {

class Stream {
 public:
  // With the handshake done. The limit is the caller's.
  static io::Task<Result<Stream>> connect(const Trust& trust, io::Socket socket, std::string host);

  io::Task<Result<size_t>> read_some(std::span<char> into);  // 0 at the end
  io::Task<Result<void>> write_all(std::string_view bytes);  // which must live until it returns
  void shutdown_send();                                      // the other side reads its end

 private:
  Stream(io::Socket socket, Session session) : socket_(std::move(socket)), session_(std::move(session)) {}
  io::Task<Result<void>> await(Wait wait);

  io::Socket socket_;
  Session session_;  // reads and writes its descriptor
};

// For those who work on sockets: see io::to_socket().
io::Stream carried(Stream stream);

}  // namespace osb::tls
