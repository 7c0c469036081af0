#include "server/redis_client.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/this_coro.hpp>
#include <vector>

#include "base/fd.h"
#include "io/look_up.h"

namespace osb::server {
namespace {

namespace asio = io::asio;
using io::Task;

constexpr auto kOpenLimit = std::chrono::seconds(5);
constexpr auto kAnswerLimit = std::chrono::seconds(5);
constexpr size_t kMaxWord = 32;

// Without the address, which is nobody's business who asks whether this service is healthy.
Error not_reached(const Error& error) {
  std::string why = error.sys_errno != 0 ? errno_text(error.sys_errno) : std::string(to_string(error.code));
  return {error.code, error.sys_errno, "connect: " + why};
}

Task<Result<io::Socket>> connect_socket(RedisAddress address) {
  std::vector<std::string> hosts = CO_TRY(co_await io::look_up(address.host));
  Error why{Code::unavailable, 0, "it has no address"};
  for (const std::string& host : hosts) {
    auto socket = co_await io::connect_tcp(host, address.port);
    if (socket) co_return std::move(*socket);
    why = not_reached(socket.error());
  }
  co_return std::unexpected(std::move(why));
}

Task<Result<tls::Stream>> secure(io::Socket socket, RedisAddress address) {
  std::vector<std::string> authorities;
  // Each time: certificates are replaced while a service runs.
  if (!address.authority_file.empty()) {
    auto text = read_file(address.authority_file);
    if (!text) co_return fail(Code::unavailable, "TLS: the file of ssl_ca_certs cannot be read");
    authorities.push_back(std::move(*text));
  }
  auto trust = CO_TRY(tls::Trust::load(authorities, "ssl_ca_certs of the DSN"));
  co_return co_await tls::Stream::connect(trust, std::move(socket), address.host);
}

// The first word alone: the rest may repeat what was sent.
std::unexpected<Error> refused(const std::string& text) {
  std::string word;
  for (char c : text.substr(0, kMaxWord)) {
    if (c < 'A' || c > 'Z') break;
    word += c;
  }
  bool login = word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM";
  return fail(login ? Code::permission_denied : Code::unavailable,
              "it answers " + (word.empty() ? "with an error" : word));
}

}  // namespace

Task<Result<RedisClient::Link>> RedisClient::connect(RedisAddress address) {
  io::Socket socket = CO_TRY(co_await connect_socket(address));
  if (!address.tls) co_return Link(std::move(socket));
  co_return Link(CO_TRY(co_await secure(std::move(socket), std::move(address))));
}

Task<Result<RedisClient>> RedisClient::open(RedisAddress address) {
  RedisClient client(CO_TRY(co_await io::with_deadline(kOpenLimit, "connect", connect(address))));
  if (!address.password.empty()) {
    // Servers before version 6 know no users.
    std::string login = address.user.empty() ? encode_redis_command({"AUTH", address.password})
                                             : encode_redis_command({"AUTH", address.user, address.password});
    auto welcome = co_await client.ask(std::move(login), kAnswerLimit);
    if (!welcome) {
      Code code = welcome.error().code == Code::timeout ? Code::timeout : Code::permission_denied;
      co_return fail(code, "log in: " + welcome.error().message);
    }
  }
  std::string database = std::to_string(address.database);
  // Also tells one that wants a password from one that does not.
  CO_TRY(co_await client.ask(encode_redis_command({"SELECT", database}), kAnswerLimit));
  co_return client;
}

Task<Result<RedisReply>> RedisClient::ask(std::string command, io::Duration limit) {
  co_return co_await io::with_deadline(limit, "ask", exchange(std::move(command)));
}

Task<Result<RedisReply>> RedisClient::exchange(std::string command) {
  auto* plain = std::get_if<io::Socket>(&link_);
  auto* secured = std::get_if<tls::Stream>(&link_);
  CO_TRY(plain ? co_await io::write_all(*plain, command) : co_await secured->write_all(command));
  std::array<char, 4096> buffer{};
  while (true) {
    auto parsed = CO_TRY(parse_redis_reply(received_));
    if (parsed) {
      received_.erase(0, parsed->size);
      if (parsed->reply.kind == RedisReply::Kind::error) co_return refused(parsed->reply.text);
      co_return std::move(parsed->reply);
    }
    if (received_.size() > kMaxReplyBytes) co_return fail(Code::too_large, "a reply is too long");
    size_t count =
        CO_TRY(plain ? co_await io::read_some(*plain, buffer) : co_await secured->read_some(buffer));
    if (count == 0) co_return fail(Code::unavailable, "it has closed the connection");
    received_.append(buffer.data(), count);
  }
}

}  // namespace osb::server
