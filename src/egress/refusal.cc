#include "egress/refusal.h"

#include <array>

#include "egress/relay.h"

namespace osb::egress {
namespace {

using io::Task;

constexpr auto kFirstWords = std::chrono::milliseconds(500);

// Ports whose clients speak first.
bool speaks_first(uint16_t port) {
  constexpr std::array<uint16_t, 8> kPorts = {80, 443, 3000, 5000, 8000, 8080, 8443, 8888};
  for (uint16_t known : kPorts) {
    if (known == port) return true;
  }
  return false;
}

Task<Result<Spoken::Kind>> first_words(io::Socket& client) {
  std::string said;
  Spoken spoken;
  while (spoken.kind == Spoken::Kind::more && said.size() < kMostSpoken) {
    char piece[4096];
    size_t n = CO_TRY(co_await io::read_some(client, piece));
    if (n == 0) break;
    said.append(piece, n);
    spoken = read_spoken(said);
  }
  co_return spoken.kind;
}

}  // namespace

std::string last_words_for(Spoken::Kind spoken, const std::string& why, int status) {
  // Fatal, access denied: what programs print is close to what it means.
  if (spoken == Spoken::Kind::tls) return std::string("\x15\x03\x03\x00\x02\x02\x31", 7);
  if (spoken != Spoken::Kind::http) return {};
  std::string body = why + "\n";
  return "HTTP/1.1 " + std::to_string(status) + (status == 403 ? " Forbidden" : " Bad Gateway") +
         "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\nX-OpenSandbox-Egress: " + (status == 403 ? "denied" : "failed") +
         "\r\n\r\n" + body;
}

Task<> close_with(io::Socket client, std::string why, uint16_t port, int status) {
  if (!speaks_first(port)) co_return reset(client);
  auto spoken = co_await io::with_deadline(kFirstWords, "the client", first_words(client));
  std::string words = spoken ? last_words_for(*spoken, why, status) : "";
  if (words.empty()) co_return reset(client);
  (void)co_await io::write_all(client, words);
  co_await end_gently(client);
}

std::string failure_text(const Error& error, const std::string& name, const std::string& address,
                         uint16_t port) {
  std::string where =
      (name.empty() ? address : name + " (" + address + ")") + " port " + std::to_string(port);
  std::string out = "The network policy of this sandbox allows " + where +
                    ", but the connection could not be made: " + error.message + ".";
  if (error.sys_errno == ENETUNREACH || error.sys_errno == EHOSTUNREACH)
    out += " The host of this sandbox has no way there itself; `osb doctor` on the host says more.";
  return out;
}

}  // namespace osb::egress
