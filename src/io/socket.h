#pragma once

// Stream sockets of any family as one type (TCP and unix), listening descriptors, and readiness of foreign
// descriptors.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "io/task.h"

namespace osb::io {

using Socket = asio::generic::stream_protocol::socket;

// Binds and listens; the descriptor may be handed to another process.
Result<Fd> listen_tcp(const std::string& host, uint16_t port, int backlog);
Result<Fd> listen_unix(const std::string& path, int backlog);

// Room for what a unix socket sends: the default makes both sides switch five times per megabyte. Costs
// nothing while nothing waits; the kernel cuts it to its own limit.
void widen_unix(int fd);

// A connected stream socket of any family as a Socket.
Result<Socket> adopt(Executor executor, Fd connected);

// Takes connections from a listening descriptor of any stream family.
class Acceptor {
 public:
  Acceptor(Executor executor, Fd listener);
  // Code::exhausted when the process is out of descriptors; Code::cancelled after close().
  Task<Result<Socket>> accept();
  void close();

 private:
  asio::posix::stream_descriptor fd_;
};

Task<Result<Socket>> connect_unix(std::string path);
Task<Result<Socket>> connect_tcp(std::string host,
                                 uint16_t port);  // numeric address or "localhost"; no resolver
// Connects an unconnected socket that was made elsewhere (in another network namespace) to 127.0.0.1:port.
Task<Result<Socket>> connect_loopback(Fd unconnected, uint16_t port);

// 0 at the end of the stream, which is reported once: a read after that waits for ever.
Task<Result<size_t>> read_some(Socket& socket, std::span<char> into);
Task<Result<void>> write_all(Socket& socket, std::string_view bytes);

// Up to kMaxPieces pieces that go out in one system call.
using Pieces = std::span<const std::string_view>;
inline constexpr size_t kMaxPieces = 8;
// What the socket takes without waiting: 0 when it takes nothing now. Never suspends, for the common case
// that all fits.
Result<size_t> try_write(Socket& socket, Pieces pieces);
// The pieces without their first `skip` bytes.
Task<Result<void>> write_all(Socket& socket, Pieces pieces, size_t skip = 0);

// Moves up to `size` bytes from a pipe without copying them: what the socket takes without waiting, 0 when
// that is nothing. The pipe must not be empty. SIGPIPE, which splice raises for a socket whose other side has
// gone, must be ignored by the process.
Result<size_t> try_splice(int pipe, Socket& socket, size_t size);
Task<Result<void>> splice_all(int pipe, Socket& socket, size_t size);

// True when the other side has closed its direction or the connection is broken, whatever is still unread.
bool peer_closed(Socket& socket);
// Returns when peer_closed() has become true. Not while something else reads from the socket.
Task<> wait_peer_closed(Socket& socket);
// The address of the other side without its port; "" for unix sockets.
std::string peer_address(Socket& socket);

// Waits until a descriptor (pidfd, pipe, seqpacket socket) is readable.
Task<Result<void>> wait_readable(asio::posix::stream_descriptor& fd);

}  // namespace osb::io
