// The lookups of a sandbox: the part of attachment.h that speaks DNS.

#include <sys/socket.h>

#include "base/log.h"
#include "egress/attachment.h"
#include "egress/dns_message.h"
#include "egress/resolver.h"
#include "io/descriptor.h"

namespace osb::egress {

using io::Task;

namespace {

constexpr size_t kMostLookups = 128;    // of one sandbox at once; more are dropped, and asked again
constexpr size_t kMostQuestion = 1024;  // bytes
constexpr size_t kMostOverTcp = 65535;
constexpr auto kTcpIdle = std::chrono::seconds(8);
constexpr uint16_t kMostOverUdp = 4096;
constexpr char kTooManyNames[] =
    "too many new names: at most 512, and 32 more in each second; names that were asked before are free";

Task<Result<void>> read_exactly(io::Socket& socket, std::span<char> into) {
  while (!into.empty()) {
    size_t n = CO_TRY(co_await io::read_some(socket, into));
    if (n == 0) co_return fail(Code::unavailable, "closed");
    into = into.subspan(n);
  }
  co_return Result<void>();
}

Task<Result<std::string>> read_framed(io::Socket& socket) {
  std::string message(2, '\0');
  CO_TRY(co_await read_exactly(socket, message));
  size_t size = static_cast<size_t>(static_cast<uint8_t>(message[0])) << 8 | static_cast<uint8_t>(message[1]);
  if (size > kMostQuestion) co_return fail(Code::too_large, "a question of so many bytes");
  message.resize(size);
  CO_TRY(co_await read_exactly(socket, message));
  co_return message;
}

}  // namespace

Task<> Attachment::receive_lookups(Fd socket) {
  int raw = socket.get();
  io::asio::posix::stream_descriptor waiting(executor_);
  if (!io::assign(waiting, std::move(socket))) co_return;
  while (co_await io::wait_readable(waiting)) {
    for (int i = 0; i < 64; ++i) {
      char buffer[kMostQuestion];
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      ssize_t n = ::recvfrom(raw, buffer, sizeof buffer, MSG_DONTWAIT | MSG_TRUNC,
                             reinterpret_cast<sockaddr*>(&peer), &size);
      if (n < 0) break;
      if (static_cast<size_t>(n) > sizeof buffer || looking_up_ >= kMostLookups) continue;
      tasks_.spawn(
          answer_lookup(raw, {buffer, static_cast<size_t>(n)}, {reinterpret_cast<char*>(&peer), size}));
    }
  }
}

// The socket is open as long as the group of tasks runs, in which this one is.
Task<> Attachment::answer_lookup(int socket, std::string message, std::string peer) {
  ++looking_up_;
  struct Done {
    size_t& count;
    ~Done() { --count; }
  } done{looking_up_};
  std::string answer = co_await look_up(std::move(message), 0);
  if (answer.empty()) co_return;
  (void)::sendto(socket, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(peer.data()), static_cast<socklen_t>(peer.size()));
}

Task<> Attachment::serve_lookups(io::Socket client) {
  while (true) {
    auto message = co_await io::with_deadline(kTcpIdle, "the client", read_framed(client));
    if (!message) co_return;
    std::string answer = co_await look_up(std::move(*message), kMostOverTcp);
    if (answer.empty()) co_return;
    std::string size = {static_cast<char>(answer.size() >> 8), static_cast<char>(answer.size() & 0xff)};
    if (!co_await io::write_all(client, size + answer)) co_return;
  }
}

Task<std::string> Attachment::look_up(std::string message, size_t most) {
  auto parsed = parse_question(message);
  if (!parsed) co_return std::string();
  DnsQuestion question = std::move(parsed->question);
  if (parsed->refusal != kDnsNoError) co_return encode_answer(question, parsed->refusal);
  if (most == 0) most = std::min(question.most_bytes, kMostOverUdp);
  auto since = std::chrono::steady_clock::now();
  AuditEvent event{.kind = AuditEvent::Kind::lookup, .name = question.name};
  auto name = sandbox::normal_name(question.name);
  Verdict verdict = name ? judge().name(*name) : Verdict{.rule = "no host name", .ground = Ground::form};
  // Where everything is open anyway, names carry nothing out that a connection could not.
  bool over = verdict.allow && !policy_.allow_the_rest && !budget_.take(*name, question.type, since);
  if (over) verdict = {.rule = kTooManyNames, .ground = Ground::load};
  event.rule = verdict.rule;
  event.ground = verdict.ground;
  if (!verdict.allow) {
    event.outcome = AuditEvent::Outcome::denied;
    log::info("denied", {{"id", id_}, {"lookup", question.name}, {"rule", verdict.rule}});
    if (name && !over) host_.webhook.tell(*name, id_);
    audit_.add(std::move(event));
    // That there is no such name, and not a refusal: resolvers then try their next search domain.
    co_return encode_answer(question, over ? kDnsRefused : kDnsNoName);
  }
  DnsAnswer answer;
  // Addresses that nobody could connect to make programs wait before they try the others.
  bool ask = question.type != kDnsAaaa || host_.network.has_ipv6();
  if (ask) {
    auto resolved = co_await resolve(host_.network, question);
    if (!resolved) {
      event.outcome = AuditEvent::Outcome::failed;
      event.rule = resolved.error().message;
      log::warn("a lookup failed",
                {{"id", id_}, {"lookup", question.name}, {"error", resolved.error().message}});
      audit_.add(std::move(event));
      co_return encode_answer(question, kDnsServerFailure);
    }
    answer = std::move(*resolved);
  }
  using namespace std::chrono;
  std::erase_if(answer.answers, [&](const DnsRecord& record) {
    auto address = record.address();
    if (!address) return false;
    if (judge().may_answer(*name, *address, host_.network.is_own(*address))) return false;
    event.outcome = AuditEvent::Outcome::denied;
    event.ground = Ground::address;
    event.rule = "an answer with " + to_string(*address) + ", which the policy does not allow";
    return true;
  });
  for (const DnsRecord& record : answer.answers) {
    if (auto address = record.address()) learned_.learn(*address, *name, record.ttl, steady_clock::now());
  }
  event.duration_ms = duration_cast<milliseconds>(steady_clock::now() - since).count();
  audit_.add(std::move(event));
  co_return encode_answer(question, answer, most);
}

}  // namespace osb::egress
