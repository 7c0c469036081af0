#include "egress/attachment.h"

#include <linux/netfilter_ipv4.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"
#include "egress/open_connection.h"
#include "egress/refusal.h"
#include "egress/way_out.h"
#include "io/descriptor.h"
#include "sys/outlet.h"

namespace osb::egress {

using io::Socket;
using io::Task;

namespace {

constexpr uint16_t kDnsPort = 53;
constexpr size_t kMostConnections = 1024;  // of one sandbox at once
constexpr size_t kFairShare = 32;          // that each may have, however many the others have
constexpr auto kConnectLimit = std::chrono::seconds(20);

}  // namespace

Attachment::Attachment(io::Executor executor, Host host, std::string handle, std::string id, Policy policy)
    : executor_(executor),
      host_(host),
      handle_(std::move(handle)),
      id_(std::move(id)),
      policy_(std::move(policy)),
      audit_(executor, host.counters),
      pidfd_(executor),
      tasks_(executor) {}

Attachment::~Attachment() = default;

Result<void> Attachment::open(std::vector<Fd> descriptors) {
  if (descriptors.at(0).valid()) TRY(io::assign(pidfd_, std::move(descriptors[0])));
  for (size_t i = 1; i < descriptors.size(); ++i) {
    bool lookups = i - 1 == sys::kOutletUdp4 || i - 1 == sys::kOutletUdp6;
    tasks_.spawn(lookups ? receive_lookups(std::move(descriptors[i]))
                         : accept_all(std::move(descriptors[i])));
  }
  return {};
}

Task<bool> Attachment::until_gone() { co_return (co_await io::wait_readable(pidfd_)).has_value(); }

Task<> Attachment::close() {
  for (Open* open : open_) {
    if (auto flow = open->flow.lock()) flow->cut();
  }
  co_await tasks_.close();
}

void Attachment::set_policy(Policy policy) {
  policy_ = std::move(policy);
  for (Open* open : open_) {
    bool own = host_.network.is_own(open->to.address);
    Verdict verdict = judge().connection(open->to.address, open->to.port, open->names, own);
    if (verdict.allow && !open->host.empty()) verdict = judge().spoken(verdict, open->to.address, open->host);
    // Names matter now, and it may have said one that is denied: nobody has looked.
    if (verdict.allow && !open->heard && judge().looks_at_names(verdict))
      verdict = {.rule = std::string(kUnheard)};
    if (verdict.allow) continue;
    open->verdict = verdict;
    if (auto flow = open->flow.lock()) flow->cut();
  }
}

Result<Attachment::Destination> Attachment::destination_of(Socket& client) {
  int fd = client.native_handle(), family = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0) return fail_errno("look at a connection");
  Destination to;
  if (family == AF_INET) {
    sockaddr_in meant{};
    size = sizeof meant;
    if (::getsockopt(fd, IPPROTO_IP, SO_ORIGINAL_DST, &meant, &size) < 0)
      return fail_errno("where it was meant to go");
    std::copy_n(reinterpret_cast<uint8_t*>(&meant.sin_addr), 4, to.address.bytes.begin());
    to.port = ntohs(meant.sin_port);
  } else {
    sockaddr_in6 meant{};
    size = sizeof meant;
    if (::getsockopt(fd, IPPROTO_IPV6, SO_ORIGINAL_DST, &meant, &size) < 0)
      return fail_errno("where it was meant to go");
    to.address.family = IpAddress::Family::v6;
    std::copy_n(reinterpret_cast<uint8_t*>(&meant.sin6_addr), 16, to.address.bytes.begin());
    to.address = sandbox::plain(to.address);
    to.port = ntohs(meant.sin6_port);
  }
  return to;
}

Task<> Attachment::accept_all(Fd listener) {
  io::Acceptor acceptor(executor_, std::move(listener));
  while (true) {
    auto client = co_await acceptor.accept();
    if (client) {
      tasks_.spawn(serve(std::move(*client)));
      continue;
    }
    if (client.error().code == Code::cancelled) co_return;
    log::warn("cannot take a connection of a sandbox", {{"id", id_}, {"error", client.error().message}});
    co_await io::sleep_for(std::chrono::milliseconds(100));
  }
}

void Attachment::note_connection(const Destination& to, AuditEvent::Outcome outcome, std::string name,
                                 std::string rule, Ground ground) {
  audit_.add({.kind = AuditEvent::Kind::connection,
              .outcome = outcome,
              .name = std::move(name),
              .address = to_string(to.address),
              .port = to.port,
              .rule = std::move(rule),
              .ground = ground});
}

Task<> Attachment::serve(Socket client) {
  struct Counted {
    size_t& count;
    explicit Counted(size_t& c) : count(c) { ++count; }
    ~Counted() { --count; }
  } counted(serving_), counted_for_all(host_.load.connections);
  auto to = destination_of(client);
  // Somebody inside has found the port of the outlet itself: that leads nowhere.
  if (!to) co_return reset(client);
  if (to->port == kDnsPort) co_return co_await serve_lookups(std::move(client));
  auto names = learned_.names(to->address, std::chrono::steady_clock::now());
  std::string name = names.empty() ? "" : names.front();
  bool crowded = host_.load.connections > host_.load.most && serving_ > kFairShare;
  if (serving_ > kMostConnections || crowded) {
    std::string_view why =
        crowded ? "all sandboxes together have too many connections" : "too many connections at once";
    note_connection(*to, AuditEvent::Outcome::denied, name, std::string(why), Ground::load);
    co_return reset(client);
  }
  bool own = host_.network.is_own(to->address);
  Verdict verdict = judge().connection(to->address, to->port, names, own);
  if (!verdict.allow) co_return co_await refuse(std::move(client), *to, std::move(verdict), std::move(name));
  auto server =
      co_await io::with_deadline(kConnectLimit, "connect", connect_tcp(host_.network, to->address, to->port));
  if (!server) {
    note_connection(*to, AuditEvent::Outcome::failed, name, server.error().message, verdict.ground);
    co_return co_await close_with(std::move(client),
                                  failure_text(server.error(), name, to_string(to->address), to->port),
                                  to->port, 502);
  }
  co_await relay(std::move(client), std::move(*server), *to, std::move(verdict), std::move(names));
}

Task<> Attachment::refuse(Socket client, Destination to, Verdict verdict, std::string name) {
  note_connection(to, AuditEvent::Outcome::denied, name, verdict.rule, verdict.ground);
  std::string host = name.empty() ? to_string(to.address) : name;
  std::string why = explain(verdict, host, to.port);
  log::info("denied", {{"id", id_}, {"host", host}, {"port", to.port}, {"rule", verdict.rule}});
  co_await close_with(std::move(client), std::move(why), to.port, 403);
}

Task<> Attachment::relay(Socket client, Socket server, Destination to, Verdict verdict,
                         std::vector<std::string> names) {
  auto open = std::make_shared<Open>(*this, to, std::move(verdict), std::move(names));
  // The policy may have changed while the connection was made.
  bool own = host_.network.is_own(to.address);
  Verdict now = judge().connection(to.address, to.port, open->names, own);
  if (!now.allow)
    co_return co_await refuse(std::move(client), to, std::move(now),
                              open->names.empty() ? "" : open->names.front());
  auto ended = [this, open](const Flow& flow) {
    using namespace std::chrono;
    auto took = duration_cast<milliseconds>(steady_clock::now() - flow.since).count();
    std::string name = !open->host.empty() ? open->host : open->names.empty() ? "" : open->names.front();
    audit_.add({.time = wall_now() - milliseconds(took),
                .kind = AuditEvent::Kind::connection,
                .outcome = open->verdict.allow ? AuditEvent::Outcome::allowed : AuditEvent::Outcome::denied,
                .name = std::move(name),
                .address = to_string(open->to.address),
                .port = open->to.port,
                .rule = open->verdict.rule,
                .ground = open->verdict.ground,
                .sent = flow.sent,
                .received = flow.received,
                .duration_ms = took});
  };
  auto flow = std::make_shared<Flow>(std::move(client), std::move(server), std::move(ended));
  open->flow = flow;
  open_.insert(open.get());
  // What the server says first is not kept back: it has been allowed, and nothing was said to it yet.
  tasks_.spawn(carry_back(flow));
  if (judge().looks_at_names(open->verdict)) co_return co_await inspect(std::move(open));
  co_await carry_out(std::move(flow));
}

Task<> Attachment::inspect(std::shared_ptr<Open> open) {
  auto flow = open->flow.lock();
  open->heard = true;
  std::string said;
  Spoken spoken;
  while (spoken.kind == Spoken::Kind::more && said.size() < kMostSpoken) {
    char piece[4096];
    auto n = co_await io::read_some(flow->client, piece);
    if (!n) co_return flow->cut();
    if (*n == 0) break;
    said.append(piece, *n);
    spoken = read_spoken(said);
  }
  Verdict verdict = open->verdict;
  if (spoken.kind == Spoken::Kind::refused)
    verdict = {.rule = std::string(kDoubtful), .ground = Ground::form};
  else if (!spoken.host.empty())
    verdict = judge().spoken(verdict, open->to.address, spoken.host);
  open->host = spoken.host;
  if (!verdict.allow) {
    open->verdict = verdict;
    co_return co_await refuse_words(std::move(open), std::move(spoken));
  }
  if (spoken.kind == Spoken::Kind::http) co_return co_await carry_requests(std::move(open), std::move(said));
  flow->sent += said.size();
  if (!co_await io::write_all(flow->server, said)) co_return flow->cut();
  co_await carry_out(std::move(flow));
}

Task<> Attachment::refuse_words(std::shared_ptr<Open> open, Spoken spoken) {
  auto flow = open->flow.lock();
  std::string host = spoken.host.empty() ? to_string(open->to.address) : spoken.host;
  log::info("denied", {{"id", id_}, {"host", host}, {"port", open->to.port}, {"rule", open->verdict.rule}});
  std::string words = last_words_for(spoken.kind, explain(open->verdict, host, open->to.port), 403);
  if (words.empty()) co_return flow->cut();
  flow->refuse_client();
  (void)io::try_write(flow->client, std::array{std::string_view(words)});
  reset(flow->server);
  co_await end_gently(flow->client);
}

}  // namespace osb::egress
