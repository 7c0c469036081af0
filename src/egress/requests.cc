// Plain HTTP where names matter: the part of attachment.h that looks at every request of a connection.

#include <sys/socket.h>

#include "base/log.h"
#include "egress/attachment.h"
#include "egress/open_connection.h"
#include "egress/refusal.h"
#include "egress/request_follower.h"

namespace osb::egress {

using io::Task;
using Next = RequestFollower::Next;

namespace {

constexpr auto kTunnelLimit = std::chrono::seconds(60);
// For what a server still has to answer, when the request behind it is refused.
constexpr auto kAnswersLimit = std::chrono::seconds(2);

Task<Result<void>> wait_for(io::Event& event) {
  co_await event.wait();
  co_return Result<void>();
}

}  // namespace

Task<> Attachment::carry_requests(std::shared_ptr<Open> open, std::string said) {
  auto flow = open->flow.lock();
  RequestFollower follower;
  while (true) {
    while (!said.empty()) {
      Next next = follower.next(said);
      if (next.kind == Next::Kind::more) break;
      if (next.kind == Next::Kind::refused) {
        Verdict verdict{.rule = std::string(kDoubtful), .ground = Ground::form};
        co_return co_await refuse_request(std::move(open), std::move(verdict), "");
      }
      if (next.kind == Next::Kind::head && !next.host.empty()) {
        // Also the first one: the policy may have changed since.
        Verdict verdict = judge().spoken(open->verdict, open->to.address, next.host);
        if (!verdict.allow)
          co_return co_await refuse_request(std::move(open), std::move(verdict), std::move(next.host));
        open->host = next.host;
      }
      flow->sent += next.size;
      if (!co_await io::write_all(flow->server, std::string_view(said).substr(0, next.size)))
        co_return flow->cut();
      said.erase(0, next.size);
      if (next.tunnel_answer.empty()) continue;
      // Nothing more is taken of the client before it is known what that is.
      auto answered = co_await io::with_deadline(kTunnelLimit, "the server", wait_for(flow->answered));
      if (!answered) co_return flow->cut();
      if (flow->answer_begin != next.tunnel_answer) continue;
      flow->sent += said.size();
      if (!co_await io::write_all(flow->server, said)) co_return flow->cut();
      co_return co_await carry_out(std::move(flow));
    }
    char piece[16 * 1024];
    auto n = co_await io::read_some(flow->client, piece);
    if (!n) co_return flow->cut();
    if (*n == 0) {
      ::shutdown(flow->server.native_handle(), SHUT_WR);
      co_return;
    }
    said.append(piece, *n);
  }
}

// Its answer has a place behind those of the requests before it: the server is told that no more will come,
// and what it still says goes first.
Task<> Attachment::refuse_request(std::shared_ptr<Open> open, Verdict verdict, std::string host) {
  auto flow = open->flow.lock();
  open->verdict = std::move(verdict);
  if (host.empty()) host = to_string(open->to.address);
  log::info("denied", {{"id", id_}, {"host", host}, {"port", open->to.port}, {"rule", open->verdict.rule}});
  flow->last_words = last_words_for(Spoken::Kind::http, explain(open->verdict, host, open->to.port), 403);
  ::shutdown(flow->server.native_handle(), SHUT_WR);
  auto ended = co_await io::with_deadline(kAnswersLimit, "the server", wait_for(flow->back_ended));
  if (!ended) co_return flow->cut();
  co_await end_gently(flow->client);
}

}  // namespace osb::egress
