#include "execd/proxy.h"

#include "base/strings.h"
#include "execd/reply.h"
#include "http/client.h"
#include "http/reverse_proxy.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(30);
constexpr auto kHeadDeadline = std::chrono::seconds(600);  // slow programs are the sandbox's own business

// Most servers listen on 127.0.0.1 or everywhere; some development servers only on ::1.
io::Task<Result<io::Socket>> connect_inside(uint16_t port) {
  auto socket = co_await io::with_deadline(kConnectDeadline, "connect", io::connect_tcp("127.0.0.1", port));
  if (socket || socket.error().sys_errno != ECONNREFUSED) co_return socket;
  auto other = co_await io::with_deadline(kConnectDeadline, "connect", io::connect_tcp("::1", port));
  co_return other ? std::move(other) : std::move(socket);
}

void add_forwarding_fields(http::Headers& headers, const std::string& peer) {
  std::string chain(headers.get("X-Forwarded-For"));
  chain = std::string(trim(std::string_view(chain).substr(0, chain.find(','))));
  if (chain.empty()) chain = headers.get("X-Real-IP");
  if (!peer.empty()) chain += (chain.empty() ? "" : ", ") + peer;
  headers.remove("X-Forwarded-Host");
  if (!chain.empty()) headers.set("X-Forwarded-For", chain);
  headers.set("X-Forwarded-Proto", "http");
}

}  // namespace

io::Task<> Proxy::relay(http::Request& request, http::ResponseWriter& response, uint16_t port) {
  auto socket = co_await connect_inside(port);
  if (!socket) {
    std::string why = "nothing answers on port " + std::to_string(port) + " inside the sandbox (" +
                      socket.error().message + ")";
    co_return co_await reply_error(response, {502, codes::kBadGateway, why});
  }
  http::Forward what;
  what.head = request.head;
  what.head_timeout = kHeadDeadline;
  http::strip_hop_by_hop(what.head.headers);
  add_forwarding_fields(what.head.headers, request.peer);
  http::ClientConnection upstream(std::move(*socket));
  auto result = co_await http::forward(request, response, upstream, std::move(what));
  if (result.outcome != http::Relay::not_answered) co_return;
  if (result.error.code == Code::invalid_argument) {
    co_return co_await reply_error(response, bad_request(result.error.message));
  }
  co_await reply_error(response,
                       {502, codes::kBadGateway,
                        "port " + std::to_string(port) + " inside the sandbox: " + result.error.message});
}

}  // namespace osb::execd
