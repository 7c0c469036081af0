#include "egress/request_follower.h"

#include <algorithm>

#include "base/strings.h"
#include "egress/client_hello.h"
#include "http/head_parse.h"

namespace osb::egress {
namespace {

using Next = RequestFollower::Next;

// The head with "/" for its target: requests to proxies have whole addresses there, which read_http_head has
// looked at. Empty: not three words.
std::string with_plain_target(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\r'));
  size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return {};
  std::string_view target = line.substr(first + 1, last - first - 1);
  bool is_plain = std::ranges::all_of(target, [](unsigned char c) { return c > ' ' && c != 0x7f; });
  if (target.empty() || target.size() > 16 * 1024 || !is_plain) return {};
  return std::string(line.substr(0, first)) + " / " + std::string(head.substr(last + 1));
}

}  // namespace

Next RequestFollower::next(std::string_view bytes) {
  if (body_.done()) return head(bytes);
  size_t used = 0;
  while (used < bytes.size() && !body_.done()) {
    size_t direct = std::min<uint64_t>(body_.direct(), bytes.size() - used);
    if (direct > 0) {
      body_.skip(direct);
      used += direct;
      continue;
    }
    char payload[1];
    auto step = body_.decode(bytes.substr(used, 1), payload);
    if (!step || step->consumed == 0) return {Next::Kind::refused};
    used += step->consumed;
  }
  return {Next::Kind::body, used};
}

Next RequestFollower::head(std::string_view bytes) {
  auto scan = http::find_head_end(bytes, scanned_);
  if (scan.state == http::HeadScan::State::malformed) return {Next::Kind::refused};
  if (scan.state == http::HeadScan::State::incomplete)
    return {bytes.size() < kMostSpoken ? Next::Kind::more : Next::Kind::refused};
  if (scan.size > kMostSpoken) return {Next::Kind::refused};
  std::string_view whole = bytes.substr(0, scan.size);
  scanned_ = 0;
  bool is_first = is_first_;
  is_first_ = false;
  Spoken spoken = read_http_head(whole);
  if (spoken.kind != Spoken::Kind::http) return {Next::Kind::refused};
  Next next{Next::Kind::head, scan.size, std::move(spoken.host)};
  std::string plain = with_plain_target(whole);
  if (plain.starts_with("CONNECT ")) {
    if (is_first) next.tunnel_answer = "HTTP/1.1 200";
    return is_first ? next : Next{Next::Kind::refused};
  }
  http::RequestHead request;
  http::Framing framing;
  if (plain.empty() || http::parse_request_head(plain, request, framing)) return {Next::Kind::refused};
  if (framing.chunked)
    body_ = http::BodyDecoder::chunked();
  else if (framing.length.value_or(0) > 0)
    body_ = http::BodyDecoder::with_length(*framing.length);
  // No other protocol than this one: in HTTP/2 every request names its host anew.
  if (is_first && framing.upgrade && iequals(trim(request.headers.get("Upgrade")), "websocket"))
    next.tunnel_answer = "HTTP/1.1 101";
  return next;
}

}  // namespace osb::egress
