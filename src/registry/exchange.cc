#include "registry/exchange.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>

#include "http/head_format.h"
#include "http/head_parse.h"

namespace osb::registry {
namespace {

constexpr size_t kMaxHead = 64 * 1024;
constexpr size_t kPiece = 64 * 1024;
constexpr size_t kFilePiece = 256 * 1024;
constexpr int kMaxRedirections = 5;

bool is_redirection(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool changes_something(const std::string& method) { return method != "GET" && method != "HEAD"; }

Result<void> send_file(Connection& to, const Body& body) {
  std::string piece(kFilePiece, '\0');
  for (uint64_t done = 0; done < body.size;) {
    size_t want = static_cast<size_t>(std::min<uint64_t>(piece.size(), body.size - done));
    ssize_t n = ::pread(body.file, piece.data(), want, static_cast<off_t>(body.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno("read what is sent");
    if (n == 0) return fail(Code::internal, "what is sent ends too early");
    TRY(to.write(std::string_view(piece).substr(0, static_cast<size_t>(n))));
    done += static_cast<uint64_t>(n);
    if (body.told) body.told(done);
  }
  return {};
}

}  // namespace

bool is_loopback(const std::string& host) {
  in_addr v4{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
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
  if (settings_.plain_hosts.contains(url.named()) ||
      settings_.plain_hosts.contains(url.named() + ":" + std::to_string(url.port)))
    return {};
  return fail(Code::permission_denied, "plain HTTP to " + url.authority() +
                                           " is refused; if you trust the network in between, name it in "
                                           "registry.plain_hosts");
}

Result<Answer> HttpClient::send_once(const std::string& method, const Url& url, const http::Headers& headers,
                                     const Body& body) {
  TRY(check_plain(url));
  if (url.tls && !trust_)
    trust_ = std::make_unique<tls::Trust>(TRY(tls::Trust::load(settings_.authorities, "registry.ca_files")));
  Answer answer(TRY(Connection::open(url, trust_.get(), settings_.patience)), url);
  http::RequestHead head{.method = method, .target = url.target};
  head.headers.add("Host", url.authority());
  head.headers.add("User-Agent", "opensandbox");
  for (const auto& [name, value] : headers) head.headers.add(name, value);
  head.headers.add("Connection", "close");
  http::BodyFraming framing;
  if (changes_something(method)) framing = {http::BodyFraming::Kind::length, body.length()};
  std::string bytes;
  TRY(http::format_request_head(head, framing, bytes));
  auto sent = answer.connection_.write(bytes + body.text);
  if (sent && body.file >= 0) sent = send_file(answer.connection_, body);
  // Who refuses a long body may answer and hang up before all of it is sent.
  auto heard = answer.read_head(method == "HEAD");
  if (!sent && !heard) return std::unexpected(std::move(sent.error()).in(url.origin()));
  TRY(in_context(url.origin(), std::move(heard)));
  return answer;
}

Result<Answer> HttpClient::send(const std::string& method, Url url, http::Headers headers, const Body& body) {
  for (int i = 0; i <= kMaxRedirections; ++i) {
    Answer answer = TRY(send_once(method, url, headers, body));
    int status = answer.status();
    bool same_again = !changes_something(method) || status == 307 || status == 308;
    if (!is_redirection(status) || !same_again) return answer;
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
