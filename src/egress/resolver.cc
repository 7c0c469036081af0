#include "egress/resolver.h"

#include <sys/random.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "egress/way_out.h"
#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::egress {
namespace {

using io::Task;

constexpr auto kOverTcp = std::chrono::seconds(3);
constexpr size_t kMostTries = 3;
constexpr size_t kMostAnswer = 65535;

uint16_t random_id() {
  uint16_t id = 0;
  while (::getrandom(&id, sizeof id, 0) != sizeof id) {
  }
  return id;
}

Task<Result<DnsAnswer>> over_udp(const HostNetwork& host, NameServer server, DnsQuestion question) {
  Fd socket = CO_TRY(connect_udp(host, server.address, server.port));
  uint16_t id = random_id();
  std::string bytes = encode_question(question, id);
  if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) co_return fail_errno("send");
  int raw = socket.get();
  io::asio::posix::stream_descriptor waiting(co_await io::asio::this_coro::executor);
  CO_TRY(io::assign(waiting, std::move(socket)));
  while (true) {
    CO_TRY(co_await io::wait_readable(waiting));
    char buffer[4096];
    ssize_t n = ::recv(raw, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) co_return fail_errno("receive");
    auto answer = parse_answer({buffer, static_cast<size_t>(n)}, question, id);
    if (answer) co_return answer;
    // Somebody else's guess, or nonsense: the real one may still come.
  }
}

Task<Result<void>> read_exactly(io::Socket& socket, std::span<char> into) {
  while (!into.empty()) {
    size_t n = CO_TRY(co_await io::read_some(socket, into));
    if (n == 0) co_return fail(Code::unavailable, "the name server has closed the connection");
    into = into.subspan(n);
  }
  co_return Result<void>();
}

Task<Result<DnsAnswer>> over_tcp(const HostNetwork& host, NameServer server, DnsQuestion question) {
  auto socket = CO_TRY(co_await connect_tcp(host, server.address, server.port));
  uint16_t id = random_id();
  std::string bytes = encode_question(question, id);
  std::string framed = {static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size() & 0xff)};
  CO_TRY(co_await io::write_all(socket, framed + bytes));
  std::string answer(2, '\0');
  CO_TRY(co_await read_exactly(socket, answer));
  size_t size = static_cast<size_t>(static_cast<uint8_t>(answer[0])) << 8 | static_cast<uint8_t>(answer[1]);
  static_assert(kMostAnswer == 65535);
  answer.resize(size);
  CO_TRY(co_await read_exactly(socket, answer));
  co_return parse_answer(answer, question, id);
}

Task<Result<DnsAnswer>> ask(const HostNetwork& host, NameServer server, DnsQuestion question) {
  auto answer =
      co_await io::with_deadline(host.patience, "the name server", over_udp(host, server, question));
  if (!answer || !answer->truncated) co_return answer;
  co_return co_await io::with_deadline(kOverTcp, "the name server", over_tcp(host, server, question));
}

}  // namespace

Task<Result<DnsAnswer>> resolve(HostNetwork& host, DnsQuestion question) {
  std::vector<NameServer> servers = host.name_servers();
  if (servers.empty())
    co_return fail(
        Code::unavailable,
        "the host of this sandbox has no name server: /etc/resolv.conf names none, and neither does "
        "egress.name_servers of the configuration");
  std::string asked;
  for (size_t i = 0; i < kMostTries && (i < servers.size() || i < 2); ++i) {
    const NameServer& server = servers[i % servers.size()];
    auto answer = co_await ask(host, server, question);
    // "No such name" is an answer; anything else that is none may be known better by the next.
    if (answer && (answer->code == kDnsNoError || answer->code == kDnsNoName)) co_return answer;
    std::string why = answer ? "code " + std::to_string(answer->code) : answer.error().message;
    asked += (asked.empty() ? "" : "; ") + to_string(server.address) + ": " + why;
  }
  co_return fail(Code::unavailable, "no name server of the host has answered (" + asked + ")");
}

}  // namespace osb::egress
