#include "cli/mcp_http.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>

#include "cli/mcp_session.h"
#include "http/server.h"
#include "io/socket.h"
#include "server/config.h"
#include "server/origin_guard.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kBacklog = 128;
constexpr size_t kMaxConnections = 256;

bool same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(i < b.size() ? b[i] : 0);
  return difference == 0;
}

// "http://localhost:3000" -> "localhost"
std::string_view host_of_origin(std::string_view origin) {
  size_t at = origin.find("://");
  return server::host_without_port(at == origin.npos ? origin : origin.substr(at + 3));
}

struct Http {
  McpOptions options;
  McpSession session;

  // Why not, or nothing.
  std::string refusal(const http::RequestHead& head) const {
    if (!options.token.empty())
      return same("Bearer " + options.token, head.headers.get("Authorization"))
                 ? ""
                 : "the token is missing or wrong; send Authorization: Bearer TOKEN";
    // A page under a name of its own that points to loopback has that name in both.
    if (!server::is_loopback_host(server::host_without_port(head.headers.get("Host"))))
      return "without a token only names of loopback are answered";
    if (const auto* origin = head.headers.find("Origin");
        origin && !server::is_loopback_host(host_of_origin(*origin)))
      return "without a token no web page of another machine is answered";
    return "";
  }
};

Task<> carry(Http& http, std::string body, std::optional<std::string>* reply) {
  *reply = co_await http.session.handle(std::move(body), nullptr);
}

Task<> answer(Http& http, http::Request& request, http::ResponseWriter& writer) {
  auto say = [&](int status, McpCode code, std::string text) {
    return writer.json(status, mcp_failure({code, std::move(text), {}}));
  };
  if (request.head.path() != "/mcp") {
    (void)co_await say(404, McpCode::invalid_request, "there is nothing here; the path is /mcp");
    co_return;
  }
  if (std::string why = http.refusal(request.head); !why.empty()) {
    (void)co_await say(http.options.token.empty() ? 403 : 401, McpCode::invalid_request, why);
    co_return;
  }
  if (request.head.method != "POST") {
    writer.always("Allow", "POST");
    (void)co_await say(405, McpCode::invalid_request,
                       "messages are sent with POST; there is no stream beside the answers");
    co_return;
  }
  auto body = co_await http::read_all(*request.body, kMaxMcpMessage);
  if (!body) {
    (void)co_await say(body.error().code == Code::too_large ? 413 : 400, McpCode::invalid_request,
                       "the message did not arrive whole, or is larger than 16 MiB");
    co_return;
  }
  std::optional<std::string> reply;
  // Whoever goes away has cancelled.
  if (co_await io::race(carry(http, std::move(*body), &reply), writer.wait_closed()) == 1) co_return;
  if (reply)
    (void)co_await writer.json(200, std::move(*reply));
  else
    (void)co_await writer.send(202, {}, "");
}

Task<> serve(http::Server& server, Fd listener) { return server.serve(std::move(listener)); }

}  // namespace

Result<void> check_mcp(const McpOptions& options) {
  if (!options.http || !options.token.empty() || server::is_loopback_host(options.host)) return {};
  return fail(Code::invalid_argument,
              "whoever reaches the port could use the server's key: give a token with OSB_MCP_TOKEN or "
              "--token, or listen on 127.0.0.1");
}

io::Task<Result<int>> serve_mcp_http(McpOptions options, Signals& signals) {
  auto executor = co_await io::asio::this_coro::executor;
  auto listener = io::listen_tcp(options.host, options.port, kBacklog);
  if (!listener)
    co_return std::unexpected(
        std::move(listener.error()).in(fmt::format("listen on {}:{}", options.host, options.port)));
  Connection to = options.connection;
  Http http{std::move(options), McpSession(executor, std::move(to))};
  http::ServerLimits limits;
  limits.max_connections = kMaxConnections;
  http::Server server(
      executor,
      [&http](http::Request& request, http::ResponseWriter& writer) { return answer(http, request, writer); },
      limits);
  fmt::print(stderr, "osb: http://{}:{}/mcp\n", http.options.host, http.options.port);
  co_await io::race(serve(server, std::move(*listener)), signals.more_than(0));
  co_await server.close(1s);
  co_return 128 + signals.first().value_or(0);
}

}  // namespace osb::cli
