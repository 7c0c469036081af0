#include "docker/engine_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/this_coro.hpp>

#include "io/look_up.h"
#include "io/stream.h"
#include "tls/stream.h"

namespace osb::docker {
namespace {

constexpr auto kOpenLimit = std::chrono::seconds(10);

class Remembering final : public io::ForeignStream {
 public:
  Remembering(tls::Stream stream, std::shared_ptr<std::optional<Error>> broken)
      : stream_(std::move(stream)), broken_(std::move(broken)) {}
  // What a read says is the engine's word (an alert); of a write only its failure is known.
  Task<Result<size_t>> read_some(std::span<char> into) override {
    auto got = co_await stream_.read_some(into);
    if (!got) *broken_ = got.error();
    co_return got;
  }
  Task<Result<void>> write_all(std::string_view bytes) override {
    auto written = co_await stream_.write_all(bytes);
    if (!written && !*broken_) *broken_ = written.error();
    co_return written;
  }
  void shutdown_send() override { stream_.shutdown_send(); }

 private:
  tls::Stream stream_;
  std::shared_ptr<std::optional<Error>> broken_;
};

// One call waits for as long as a container runs: an engine whose host is gone must not be waited for.
void notice_silence(int socket) {
  constexpr int kOn = 1, kIdleSeconds = 30, kIntervalSeconds = 10, kProbes = 3;
  (void)::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalSeconds, sizeof kIntervalSeconds);
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  // Nobody is probed while something sent is not acknowledged; the kernel would try for a quarter of an hour.
  constexpr unsigned kMost = (kIdleSeconds + kIntervalSeconds * kProbes) * 1000;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kMost, sizeof kMost);
}

Task<Result<io::Socket>> connect_any(TcpEngine engine) {
  auto addresses = CO_TRY(co_await io::look_up(engine.host));
  Error why{Code::unavailable, 0, "its name has no address"};
  for (const std::string& address : addresses) {
    auto socket = co_await io::connect_tcp(address, engine.port);
    if (socket) co_return std::move(*socket);
    // Without the address: whoever asks for the health of this service reads it.
    int number = socket.error().sys_errno;
    why = {socket.error().code, number,
           "connect: " + (number != 0 ? errno_text(number) : socket.error().message)};
  }
  co_return std::unexpected(std::move(why));
}

Task<Result<Link>> open_tcp(TcpEngine engine, io::TaskGroup& pumps) {
  io::Socket socket = CO_TRY(co_await connect_any(engine));
  notice_silence(socket.native_handle());
  if (!engine.trust) co_return Link{http::ClientConnection(std::move(socket))};
  auto stream = CO_TRY(co_await tls::Stream::connect(*engine.trust, std::move(socket), engine.host));
  auto broken = std::make_shared<std::optional<Error>>();
  io::Stream carried(std::make_unique<Remembering>(std::move(stream), broken));
  auto joined = CO_TRY(io::to_socket(std::move(carried), co_await io::asio::this_coro::executor, pumps));
  co_return Link{http::ClientConnection(std::move(joined)), std::move(broken)};
}

// The socket's group may change while the service runs: whether this user may is tried each time.
Task<Result<io::Socket>> connect_socket(EngineAddress address) {
  auto socket = co_await io::connect_unix(address.socket);
  if (socket || !address.by_root) co_return socket;
  int why = socket.error().sys_errno;
  if (why != EACCES && why != EPERM) co_return socket;
  co_return co_await address.by_root();
}

}  // namespace

Task<Result<Link>> open_link(EngineAddress address, io::TaskGroup& pumps) {
  if (address.tcp) {
    co_return co_await io::with_deadline(kOpenLimit, "the Docker engine",
                                         open_tcp(std::move(*address.tcp), pumps));
  }
  auto socket = CO_TRY(co_await io::with_deadline(kOpenLimit, "the Docker engine", connect_socket(address)));
  co_return Link{http::ClientConnection(std::move(socket))};
}

std::string remedy_for(const Error& error, const EngineAddress& address) {
  auto says = [&](std::string_view words) { return error.message.find(words) != std::string::npos; };
  if (!address.tcp) {
    if (error.sys_errno != EACCES || !address.by_root) return "";
    return "; root may not use " + address.socket +
           " either: a security module refuses it, or the service was started without CAP_DAC_OVERRIDE; let "
           "its group be one other than root's (dockerd --group docker), and start the service again";
  }
  // Words of the library for what the other side's alerts mean.
  if (says("alert"))
    return "; the engine does not accept this server's certificate: name one that its authority (dockerd "
           "--tlscacert) has signed in docker.tls_cert and docker.tls_key, and start the service again";
  if (says("wrong version number") || says("packet length too long"))
    return "; what listens there does not speak TLS: start dockerd with --tlsverify, or remove docker.tls_ca";
  if (says("hostname mismatch") || says("IP address mismatch"))
    return "; the engine's certificate is for other names than the one in docker.host";
  return "";
}

}  // namespace osb::docker
