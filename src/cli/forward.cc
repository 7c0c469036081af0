#include "cli/forward.h"

#include <fmt/format.h>
#include <netinet/in.h>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "http/tunnel.h"
#include "io/socket.h"

namespace osb::cli {
namespace {

constexpr int kBacklog = 128;
constexpr const char* kHere = "127.0.0.1";

Result<uint16_t> parse_port(std::string_view text, uint16_t least) {
  auto port = parse_number<uint16_t>(text);
  if (!port || *port < least)
    return fail(Code::invalid_argument, fmt::format("a port is a number from {} to 65535", least));
  return *port;
}

uint16_t port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

Task<> serve_one(const Connection& to, Forwarding what, io::Socket client) {
  Api api(to);
  auto opened = co_await api.open_port(what.sandbox, what.port);
  if (!opened) co_return print_error("osb", opened.error());
  std::string first = opened->take_buffered();
  co_await http::tunnel(client, "", opened->socket(), std::move(first));
}

Task<> serve(const Connection& to, Forwarding what, Fd listener, io::TaskGroup& group) {
  io::Acceptor acceptor(co_await io::asio::this_coro::executor, std::move(listener));
  while (true) {
    auto client = co_await acceptor.accept();
    if (client) {
      group.spawn(serve_one(to, what, std::move(*client)));
    } else if (client.error().code == Code::cancelled) {
      co_return;
    } else {
      print_error("osb", client.error());
      co_await io::sleep_for(std::chrono::milliseconds(100));  // out of descriptors: some will be free again
    }
  }
}

Task<> interrupted() {
  io::asio::signal_set signals(co_await io::asio::this_coro::executor, SIGINT, SIGTERM);
  co_await signals.async_wait(io::asio::as_tuple(io::asio::use_awaitable));
}

}  // namespace

Result<Forwarding> parse_forwarding(std::string_view text) {
  auto words = split(text, ':');
  if (words.size() != 2 && words.size() != 3)
    return fail(Code::invalid_argument, "write LOCAL:ID:PORT, or ID:PORT for the same port here");
  Forwarding out;
  out.sandbox = words[words.size() - 2];
  out.port = TRY(parse_port(words.back(), 1));
  out.local = words.size() == 3 ? TRY(parse_port(words[0], 0)) : out.port;
  if (out.sandbox.empty()) return fail(Code::invalid_argument, "the sandbox has no id");
  return out;
}

namespace {

Task<Result<void>> begin(const ForwardOptions& options, io::TaskGroup& group) {
  Api api(options.connection);
  for (Forwarding what : options.ports) {
    what.sandbox = CO_TRY(co_await api.find(what.sandbox));
    // Who mistypes an id learns it now, and not with the first connection.
    CO_TRY(co_await api.get(what.sandbox));
    auto listener = io::listen_tcp(kHere, what.local, kBacklog);
    if (!listener)
      co_return std::unexpected(std::move(listener.error()).in(fmt::format("listen on port {}", what.local)));
    fmt::print("{}:{} -> port {} of {}\n", kHere, port_of(listener->get()), what.port, what.sandbox);
    group.spawn(serve(options.connection, what, std::move(*listener), group));
  }
  std::fflush(stdout);
  co_return Result<void>();
}

}  // namespace

io::Task<int> forward_ports(ForwardOptions options) {
  io::TaskGroup group(co_await io::asio::this_coro::executor);
  auto begun = co_await begin(options, group);
  if (begun)
    co_await interrupted();
  else
    print_error("osb", begun.error());
  co_await group.close();
  co_return begun ? 0 : 1;
}

namespace {

Task<Result<std::string>> preview_of(const PreviewOptions& options) {
  Api api(options.connection);
  std::string id = CO_TRY(co_await api.find(options.sandbox));
  auto answer = CO_TRY(co_await api.ask(
      "GET", fmt::format("/v1/sandboxes/{}/endpoints/{}?preview=true", percent_encode(id), options.port)));
  if (!answer.is_object()) co_return fail(Code::corrupt, "the answer has no \"endpoint\"");
  co_return text_of(answer.as_object(), "endpoint");
}

}  // namespace

io::Task<int> print_preview(PreviewOptions options) {
  auto name = co_await preview_of(options);
  if (name) {
    fmt::print("http://{}/\n", *name);
    co_return 0;
  }
  print_error("osb", name.error());
  co_return 1;
}

}  // namespace osb::cli
