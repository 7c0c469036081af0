#include "registry/exchange.h"

#include <arpa/inet.h>

#include <algorithm>

#include "http/head_format.h"
#include "http/head_parse.h"

namespace osb::registry {
namespace {

constexpr size_t kMaxHead = 64 * 1024;
constexpr size_t kPiece = 64 * 1024;
constexpr int kMaxRedirections = 5;

bool is_redirection(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "localhost";
}

Result<size_t> Answer::fill() {
  buffer_.erase(0, used_);
  used_ = 0;
  size_t before = buffer_.size();
  buffer_.resize(before + kPiece);
  auto count = connection_.read(std::span(buffer_).subspan(before));
  buffer_.resize(before + (count ? *count : 0));
  return count;
}

Result<void> Answer::read_head(bool has_no_body) {
  size_t scanned = 0;
  http::HeadScan scan;
  while (true) {
    scan = http::find_head_end(buffer_, scanned);
    if (scan.state == http::HeadScan::State::malformed)
      return fail(Code::corrupt, "this is no HTTP server: " + std::string(scan.reason));
    if (scan.state == http::HeadScan::State::complete) break;
    if (buffer_.size() > kMaxHead) return fail(Code::corrupt, "the answer's head is larger than 64 KiB");
    if (TRY(fill()) == 0) return fail(Code::unavailable, "the connection ended before the answer");
  }
  http::Framing framing;
  std::string_view head = std::string_view(buffer_).substr(0, scan.size);
  if (auto refused = http::parse_response_head(head, head_, framing))
    return fail(Code::corrupt, "the answer is no valid HTTP: " + std::string(refused->reason));
  used_ = scan.size;
  if (has_no_body || head_.status == 204 || head_.status == 304) {
    decoder_ = http::BodyDecoder();
  } else if (framing.chunked) {
    decoder_ = http::BodyDecoder::chunked();
  } else if (framing.length) {
    decoder_ = http::BodyDecoder::with_length(*framing.length);
  } else {
    decoder_ = http::BodyDecoder::until_close();
  }
  return {};
}

Result<size_t> Answer::read(std::span<char> into) {
  while (!decoder_.done() && !into.empty()) {
    if (used_ < buffer_.size()) {
      auto step = TRY(decoder_.decode(std::string_view(buffer_).substr(used_), into));
      used_ += step.consumed;
      if (step.produced > 0) return step.produced;
      continue;
    }
    // Most of a layer goes straight to where it belongs.
    if (uint64_t direct = decoder_.direct(); direct > 0) {
      auto count = TRY(connection_.read(into.first(std::min<uint64_t>(into.size(), direct))));
      if (count > 0) {
        decoder_.skip(count);
        return count;
      }
      TRY(decoder_.end_of_stream());
      return size_t{0};
    }
    if (TRY(fill()) == 0) {
      TRY(decoder_.end_of_stream());
      return size_t{0};
    }
  }
  return size_t{0};
}

Result<std::string> Answer::read_all(size_t limit) {
  std::string out;
  std::string piece(kPiece, '\0');
  while (size_t count = TRY(read(piece))) {
    if (out.size() + count > limit)
      return fail(Code::too_large, "an answer of more than " + std::to_string(limit) + " bytes");
    out.append(piece, 0, count);
  }
  return out;
}

Result<void> HttpClient::check_plain(const Url& url) const {
  if (url.tls || is_loopback(url.host)) return {};
  if (settings_.plain_hosts.contains(url.host) ||
      settings_.plain_hosts.contains(url.host + ":" + std::to_string(url.port)))
    return {};
  return fail(Code::permission_denied, "plain HTTP to " + url.authority() +
                                           " is refused; if you trust the network in between, name it in "
                                           "registry.plain_hosts");
}

Result<Answer> HttpClient::get_once(const Url& url, const http::Headers& headers) {
  TRY(check_plain(url));
  if (url.tls && !trust_)
    trust_ = std::make_unique<tls::Trust>(TRY(tls::Trust::load(settings_.authorities, "registry.ca_files")));
  Answer answer(TRY(Connection::open(url, trust_.get(), settings_.patience)), url);
  http::RequestHead head{.method = "GET", .target = url.target};
  head.headers.add("Host", url.authority());
  head.headers.add("User-Agent", "opensandbox");
  for (const auto& [name, value] : headers) head.headers.add(name, value);
  head.headers.add("Connection", "close");
  std::string bytes;
  TRY(http::format_request_head(head, {}, bytes));
  TRY(answer.connection_.write(bytes));
  TRY(in_context(url.origin(), answer.read_head(false)));
  return answer;
}

Result<Answer> HttpClient::get(Url url, http::Headers headers) {
  for (int i = 0; i <= kMaxRedirections; ++i) {
    Answer answer = TRY(get_once(url, headers));
    if (!is_redirection(answer.status())) return answer;
    Url next = TRY(in_context(url.origin() + " leads elsewhere", resolve(url, answer.field("Location"))));
    if (url.tls && !next.tls)
      return fail(Code::permission_denied, url.origin() + " leads to plain HTTP at " + next.authority());
    // Object stores have their own signatures in the address; a registry's password is none of their
    // business.
    if (!next.same_origin(url)) headers.remove("Authorization");
    url = std::move(next);
  }
  return fail(Code::corrupt, url.origin() + ": more than 5 redirections");
}

}  // namespace osb::registry
