#pragma once

// Stream sockets of any family as one type (TCP and unix), listening descriptors, and readiness of foreign descriptors.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <span>
#include <string>

#include "base/fd.h"
#include "io/task.h"

namespace osb::io {

using Socket = asio::generic::stream_protocol::socket;

// Binds and listens; the descriptor may be handed to another process.
Result<Fd> listen_tcp(const std::string& host, uint16_t port, int backlog);
Result<Fd> listen_unix(const std::string& path, int backlog);

// Takes connections from a listening descriptor of any stream family.
class Acceptor {
 public:
  Acceptor(Executor executor, Fd listener);
  Task<Result<Socket>> accept();
  void close();

 private:
  asio::posix::stream_descriptor fd_;
};

Task<Result<Socket>> connect_unix(std::string path);
Task<Result<Socket>> connect_tcp(std::string host, uint16_t port);  // numeric address or "localhost"; no resolver
// Connects an unconnected socket that was made elsewhere (in another network namespace) to 127.0.0.1:port.
Task<Result<Socket>> connect_loopback(Fd unconnected, uint16_t port);

Task<Result<size_t>> read_some(Socket& socket, std::span<char> into);  // 0 at the end of the stream
Task<Result<void>> write_all(Socket& socket, std::string_view bytes);

// Waits until a descriptor (pidfd, pipe, seqpacket socket) is readable.
Task<Result<void>> wait_readable(asio::posix::stream_descriptor& fd);

}  // namespace osb::io
