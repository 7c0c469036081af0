// The first bytes of a connection: TLS or HTTP. A host that was found is found again in the same bytes with
// more behind them, and never in a part of them.

#include "egress/client_hello.h"

#include "check.h"

using namespace osb::egress;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view input = osb::fuzz::text_of(data, size);
  (void)read_client_hello(input);
  (void)read_http_head(input);
  Spoken spoken = read_spoken(input);
  bool decided = spoken.kind == Spoken::Kind::tls || spoken.kind == Spoken::Kind::http;
  CHECK(decided || spoken.host.empty());
  for (char c : spoken.host) CHECK(c > ' ' && c < 0x7f);
  if (!decided) return 0;
  Spoken more = read_spoken(std::string(input) + "x");
  CHECK(more.kind == spoken.kind && more.host == spoken.host);
  return 0;
}
