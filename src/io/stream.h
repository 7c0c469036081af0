#pragma once

// A connection as whoever made it has it: a socket, or something else that carries bytes both ways (a channel
// of an engine's own protocol, a WebSocket, TLS).
//
// Everything above works on sockets, because what is fast needs a descriptor (splice, poll, reading without
// waiting). So a stream that is a socket is given out as it is, without a cost; any other is joined to one
// half of a socket pair by two coroutines, one copy more per byte.

#include <memory>
#include <optional>

#include "io/socket.h"

namespace osb::io {

// Bytes both ways, by other means than a socket. Belongs to one loop; one read and one write at a time.
class ForeignStream {
 public:
  virtual ~ForeignStream() = default;
  virtual Task<Result<size_t>> read_some(std::span<char> into) = 0;  // 0 at the end
  virtual Task<Result<void>> write_all(std::string_view bytes) = 0;
  virtual void shutdown_send() = 0;  // the other side reads its end
};

class Stream {
 public:
  Stream(Socket socket) : socket_(std::move(socket)) {}
  explicit Stream(std::unique_ptr<ForeignStream> foreign) : foreign_(std::move(foreign)) {}

  bool is_socket() const { return socket_.has_value(); }

 private:
  friend Result<Socket> to_socket(Stream stream, const Executor& executor, TaskGroup& pumps);
  std::optional<Socket> socket_;
  std::unique_ptr<ForeignStream> foreign_;
};

// What copies, if somebody has to, runs in `pumps` and ends with either side.
Result<Socket> to_socket(Stream stream, const Executor& executor, TaskGroup& pumps);

}  // namespace osb::io
