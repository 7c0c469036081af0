// What a proxy in front says of a client: addresses only, a bounded number of them, the connection's own
// last; a name that fits into an endpoint; and nothing of it from anybody who is not trusted.
#include "server/forwarded.h"
#include "base/strings.h"
#include "check.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static const sandbox::IpPrefix trusted[] = {sandbox::parse_target("10.0.0.0/8")->prefix};
  constexpr std::string_view kNames[] = {"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"};
  http::Request request;
  request.head.headers.add("Host", "here");
  size_t count = 0;
  for (std::string_view line : split(fuzz::text_of(data, size), '\n'))
    request.head.headers.add(std::string(kNames[count++ % 3]), std::string(line));
  request.peer = "192.0.2.1";
  server::Forwarded plain = server::forwarded(request, trusted);
  CHECK(plain.addresses == request.peer && plain.host == "here" && plain.protocol == "http");
  request.peer = "10.0.0.1";
  server::Forwarded said = server::forwarded(request, trusted);
  auto addresses = split(said.addresses, ',');
  CHECK(addresses.size() <= 17 && trim(addresses.back()) == request.peer);
  for (size_t i = 0; i < addresses.size(); ++i) {
    auto address = sandbox::parse_ip(trim(addresses[i]));
    CHECK(address);
    CHECK(i == 0 || trusted[0].contains(*address));
  }
  CHECK(said.host.find_first_of(" /@\"'<>\\,?#%") == std::string::npos && !said.host.empty());
  CHECK(said.protocol == "http" || said.protocol == "https");
  return 0;
}
