#include "server/webhook_carrier.h"

#include <sys/socket.h>

#include <utility>
#include <vector>

#include "base/frame.h"
#include "base/log.h"
#include "http/head_parse.h"
#include "io/socket.h"
#include "json/decode.h"
#include "sandbox/webhook.h"
#include "sys/descriptors.h"
#include "tls/stream.h"

namespace osb::server {
namespace {

using io::Task;

constexpr auto kPostLimit = std::chrono::seconds(5);
constexpr auto kPause = std::chrono::seconds(1);
constexpr size_t kMostFrame = 64 * 1024, kMostHead = 16 * 1024;

Result<std::string> read_denial(std::string_view frame) {
  auto value = TRY(json::parse(frame));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "denial", json::Reading::exact);
  std::string body = field["body"].required_string();
  if (!issues.empty()) return fail(Code::corrupt, "an odd call of the egress process");
  return body;
}

Task<Result<int>> read_status(tls::Stream& stream) {
  std::string head;
  size_t scanned = 0;
  while (true) {
    auto scan = http::find_head_end(head, scanned);
    if (scan.state == http::HeadScan::State::complete) {
      http::ResponseHead response;
      http::Framing framing;
      if (http::parse_response_head(std::string_view(head).substr(0, scan.size), response, framing)) break;
      co_return response.status;
    }
    if (scan.state == http::HeadScan::State::malformed || head.size() > kMostHead) break;
    char piece[4096];
    size_t n = CO_TRY(co_await stream.read_some(piece));
    if (n == 0) break;
    head.append(piece, n);
  }
  co_return fail(Code::unavailable, "what the webhook answers is no HTTP");
}

Task<Result<int>> post(sandbox::Webhook hook, io::Socket socket, std::string body) {
  // Each time: certificates are replaced while a service runs.
  auto trust = CO_TRY(tls::Trust::load({}, "the system's trust store"));
  auto stream = CO_TRY(co_await tls::Stream::connect(trust, std::move(socket), hook.host));
  std::string request =
      "POST " + hook.target + " HTTP/1.1\r\nHost: " + hook.authority +
      "\r\nContent-Type: application/json\r\nUser-Agent: opensandbox-egress\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
  CO_TRY(co_await stream.write_all(request));
  co_return co_await read_status(stream);
}

// The egress process reads what sandboxes send: whoever took it over must not make the server use anything
// else.
bool is_tcp(int fd) {
  int domain = 0, type = 0;
  socklen_t size = sizeof domain;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0) return false;
  size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) < 0) return false;
  return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}

// Until the egress process has ended. `told`: that something went wrong; once is enough.
Task<Result<void>> carry(io::Socket egress, sandbox::Webhook hook, bool& told) {
  FrameReader frames(kMostFrame);
  std::vector<Fd> given;
  while (true) {
    auto frame = CO_TRY(frames.next());
    if (!frame) {
      auto [error] =
          co_await egress.async_wait(io::Socket::wait_read, io::asio::as_tuple(io::asio::deferred));
      if (error) co_return std::unexpected(io::to_error("wait for a denial", error));
      char piece[4096];
      size_t n = CO_TRY(sys::receive_with_descriptors(egress.native_handle(), piece, given, MSG_DONTWAIT));
      if (n == 0) co_return Result<void>();
      frames.feed({piece, n});
      continue;
    }
    std::string body = CO_TRY(read_denial(*frame));
    if (given.size() != 1 || !is_tcp(given[0].get()))
      co_return fail(Code::corrupt, "a denial without a connection");
    auto server = CO_TRY(io::adopt(co_await io::asio::this_coro::executor, std::move(given[0])));
    given.clear();
    auto status =
        co_await io::with_deadline(kPostLimit, "the webhook", post(hook, std::move(server), std::move(body)));
    if (!status && !std::exchange(told, true))
      log::warn("the webhook for denials is not reached", {{"error", status.error().message}});
    std::string answer = "{\"status\":" + std::to_string(status.value_or(0)) + "}";
    CO_TRY(co_await io::write_all(egress, encode_frame(answer)));
  }
}

Task<Result<void>> carry_for_service(std::string socket_path, sandbox::Webhook hook, bool& told) {
  auto socket = CO_TRY(co_await io::connect_unix(std::move(socket_path)));
  CO_TRY(co_await io::write_all(socket, encode_frame(R"({"webhook":true})")));
  co_return co_await carry(std::move(socket), std::move(hook), told);
}

}  // namespace

Task<> carry_denials(std::string socket_path, std::string url) {
  auto hook = sandbox::parse_webhook(url);
  if (!hook || !hook->tls) co_return;
  bool told = false;
  while (true) {
    (void)co_await carry_for_service(socket_path, *hook, told);
    co_await io::sleep_for(kPause);
  }
}

Task<Result<void>> carry_sidecars_denials(Fd control, sandbox::Webhook hook) {
  bool told = false;
  while (true) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
      co_return fail_errno("socketpair");
    Fd ours(pair[0]), theirs(pair[1]);
    const int given[] = {theirs.get()};
    int sent = sys::send_with_descriptors(control.get(), "c", given);
    if (sent < 0) co_return fail_errno("the sidecar has gone", -sent);
    theirs.reset();
    auto socket = CO_TRY(io::adopt(co_await io::asio::this_coro::executor, std::move(ours)));
    (void)co_await carry(std::move(socket), hook, told);
    co_await io::sleep_for(kPause);
  }
}

}  // namespace osb::server
