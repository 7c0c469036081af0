// A head that our strict parser accepts means the same to an independent parser, if that accepts it too, and
// the same to us after it was written again. Where the head ends does not depend on the pieces in which it
// arrives.
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/src.hpp>
#include <iterator>

#include "check.h"
#include "http/head_check.h"
#include "http/head_format.h"
#include "http/head_parse.h"

using namespace osb;
namespace beast = boost::beast;

namespace {

void check_against_beast(std::string_view text, const http::RequestHead& head, const http::Framing& framing) {
  beast::http::request_parser<beast::http::empty_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(1 << 20);
  beast::error_code error;
  parser.put(boost::asio::buffer(text.data(), text.size()), error);
  if (!parser.is_header_done()) return;  // it refuses the head; that is its right
  const auto& theirs = parser.get();
  CHECK(head.method == std::string_view(theirs.method_string()));
  CHECK(head.target == std::string_view(theirs.target()));
  CHECK(head.http_1_1 == (theirs.version() == 11));
  CHECK(framing.chunked == parser.chunked());
  CHECK(framing.length.has_value() == parser.content_length().has_value());
  CHECK(!framing.length || *framing.length == *parser.content_length());
  CHECK(head.headers.size() == static_cast<size_t>(std::distance(theirs.begin(), theirs.end())));
  for (const auto& [name, value] : head.headers) {
    bool found = false;
    auto [from, to] = theirs.equal_range(name);
    for (auto at = from; at != to; ++at) found = found || value == std::string_view(at->value());
    CHECK(found);
  }
}

void check_written_again(const http::RequestHead& head, const http::Framing& framing) {
  using Kind = http::BodyFraming::Kind;
  http::BodyFraming body;
  if (framing.chunked) body = {Kind::chunked};
  if (framing.length) body = {Kind::length, *framing.length};
  http::RequestHead sent = head, read;
  if (!sent.headers.contains("host")) sent.headers.add("Host", "a");
  sent.http_1_1 = true;
  std::string out;
  CHECK(http::format_request_head(sent, body, out));
  if (out.size() > http::kMaxHeadBytes || sent.headers.size() > http::kMaxHeaderFields) return;
  http::Framing again;
  auto rejected = http::parse_request_head(out, read, again);
  CHECK(!rejected || rejected->status == 431);  // fields of ours may make it one too many
  if (rejected) return;
  CHECK(read.method == head.method && read.target == head.target);
  CHECK(again.chunked == framing.chunked && again.length == framing.length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  size_t scanned = 0, in_one = 0;
  http::HeadScan whole = http::find_head_end(text, in_one), pieces;
  for (size_t n = 1; n <= size && pieces.state == http::HeadScan::State::incomplete; ++n) {
    pieces = http::find_head_end(text.substr(0, n), scanned);
  }
  if (size > 0) CHECK(pieces.state == whole.state && pieces.size == whole.size);

  http::ResponseHead response;
  http::Framing ignored;
  http::parse_response_head(text, response, ignored);

  http::RequestHead head;
  http::Framing framing;
  bool accepted = !http::parse_request_head(text, head, framing);
  CHECK(accepted == http::check_request_head(text).has_value() || size > http::kMaxHeadBytes);
  if (!accepted) return 0;
  CHECK(whole.state == http::HeadScan::State::complete && whole.size == size);
  check_against_beast(text, head, framing);
  check_written_again(head, framing);
  return 0;
}
