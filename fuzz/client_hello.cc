// The first bytes of a connection: TLS or HTTP, and the requests behind them. A host that was found is found
// again in the same bytes with more behind them, and never in a part of them.

#include "egress/client_hello.h"
#include "egress/request_follower.h"

#include "check.h"

using namespace osb::egress;

namespace {

// The hosts of all requests, when they come in pieces of this size.
std::string followed(std::string_view input, size_t piece) {
  RequestFollower follower;
  std::string held, out;
  while (true) {
    while (!held.empty()) {
      auto next = follower.next(held);
      if (next.kind == RequestFollower::Next::Kind::more) break;
      if (next.kind == RequestFollower::Next::Kind::refused) return out + "!";
      CHECK(next.size > 0 && next.size <= held.size());
      if (next.kind == RequestFollower::Next::Kind::head) out += next.host + "|";
      held.erase(0, next.size);
    }
    if (input.empty()) return out;
    held.append(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view input = osb::fuzz::text_of(data, size);
  (void)read_client_hello(input);
  (void)read_http_head(input);
  if (!input.empty()) CHECK(followed(input, input.size()) == followed(input, 7));
  Spoken spoken = read_spoken(input);
  bool decided = spoken.kind == Spoken::Kind::tls || spoken.kind == Spoken::Kind::http;
  CHECK(decided || spoken.host.empty());
  for (char c : spoken.host) CHECK(c > ' ' && c < 0x7f);
  if (!decided) return 0;
  Spoken more = read_spoken(std::string(input) + "x");
  CHECK(more.kind == spoken.kind && more.host == spoken.host);
  return 0;
}
