#include "interpreter/jupyter_server.h"

#include <boost/asio/ip/tcp.hpp>

#include "base/strings.h"
#include "json/decode.h"

namespace osb::interpreter {
namespace {

constexpr auto kCallLimit = std::chrono::seconds(30);
constexpr size_t kMaxAnswer = 4 << 20;

}  // namespace

Result<JupyterAddress> parse_jupyter_url(std::string_view url, std::string token) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with("https://")) {
    return fail(Code::unsupported, "JUPYTER_HOST: a notebook server is reached over plain http only");
  }
  if (!url.starts_with(kScheme)) return fail(Code::invalid_argument, "JUPYTER_HOST must be an http URL");
  std::string_view rest = url.substr(kScheme.size());
  rest = rest.substr(0, rest.find_first_of("?#"));
  size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash), base = rest.substr(slash);
  while (base.ends_with('/')) base.remove_suffix(1);
  JupyterAddress address{std::string(authority), 80, std::string(base), std::move(token)};
  size_t colon = authority.rfind(':');
  if (colon != authority.npos && authority.find(']', colon) == authority.npos) {
    auto port = parse_number<uint16_t>(authority.substr(colon + 1));
    if (!port || *port == 0)
      return fail(Code::invalid_argument, "JUPYTER_HOST: '" + std::string(url) + "' has no usable port");
    address.port = *port;
    address.host = authority.substr(0, colon);
  }
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host.empty()) return fail(Code::invalid_argument, "JUPYTER_HOST names no host");
  return address;
}

http::RequestHead JupyterServer::head(std::string method, const std::string& path) const {
  http::RequestHead head{std::move(method), address_.base + path};
  bool v6 = address_.host.find(':') != std::string::npos;
  head.headers.add("Host",
                   (v6 ? "[" + address_.host + "]" : address_.host) + ":" + std::to_string(address_.port));
  if (!address_.token.empty()) head.headers.add("Authorization", "Token " + address_.token);
  return head;
}

io::Task<Result<http::ClientConnection>> JupyterServer::connect() const {
  auto socket = CO_TRY(co_await io::connect_tcp(address_.host, address_.port));
  // Small messages both ways: waiting for acknowledgements would add 40 ms to each.
  boost::system::error_code ignored;
  socket.set_option(io::asio::ip::tcp::no_delay(true), ignored);
  co_return http::ClientConnection(std::move(socket));
}

io::Task<Result<http::Response>> JupyterServer::exchange(std::string method, std::string path,
                                                         std::string body) const {
  auto connection = CO_TRY(co_await connect());
  http::RequestHead request = head(std::move(method), path);
  if (!body.empty()) request.headers.add("Content-Type", "application/json");
  request.headers.add("Connection", "close");
  co_return co_await http::fetch(connection, std::move(request), std::move(body), kMaxAnswer);
}

io::Task<Result<boost::json::value>> JupyterServer::call(std::string method, std::string path,
                                                         std::string body) const {
  std::string what = "notebook server: " + method + " " + path;
  auto response = co_await io::with_deadline(kCallLimit, what, exchange(method, path, std::move(body)));
  if (!response) co_return fail(Code::unavailable, what + ": " + response.error().message);
  int status = response->head.status;
  if (status / 100 != 2) {
    std::string hint = status == 401 || status == 403 ? "; check JUPYTER_TOKEN" : "";
    co_return fail(Code::internal, what + ": status " + std::to_string(status) + hint);
  }
  if (trim(response->body).empty()) co_return boost::json::value();
  co_return json::parse(response->body);
}

}  // namespace osb::interpreter
