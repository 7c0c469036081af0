// A head that passes has one meaning: it ends where the scanner says it ends, however it arrives, and an
// independent and more lenient parser reads the same method, target, fields and framing in it.
#include "http/head_check.h"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/src.hpp>

#include "check.h"
#include "http/head_parse.h"

using namespace osb;
namespace beast = boost::beast;

namespace {

void same_to_beast(std::string_view text, const http::RequestHead& head, const http::Framing& framing) {
  beast::http::request_parser<beast::http::empty_body> parser;
  parser.body_limit(boost::none);
  parser.header_limit(1 << 20);
  beast::error_code error;
  parser.put(boost::asio::buffer(text.data(), text.size()), error);
  // Beast refuses Connection and Upgrade lists that are no lists of words; here they have no meaning beyond
  // the words in them. To refuse more is no other reading.
  if (error == beast::http::error::bad_value) return;
  CHECK(!error || error == beast::http::error::need_more || error == beast::http::error::unexpected_body);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);

  // The scanner finds the same end in one look and byte by byte.
  size_t scanned = 0;
  http::HeadScan whole = http::find_head_end(text, scanned);
  CHECK(scanned <= size);
  http::HeadScan scan;
  scanned = 0;
  for (size_t i = 0; i <= size && scan.state == http::HeadScan::State::incomplete; ++i) {
    scan = http::find_head_end(text.substr(0, i), scanned);
  }
  CHECK(scan.state == whole.state && scan.size == whole.size);

  http::ResponseHead response;
  http::Framing framing;
  if (!http::parse_response_head(text, response, framing))
    CHECK(response.status >= 100 && response.status <= 999);

  framing = {};
  http::RequestHead head;
  auto rejected = http::parse_request_head(text, head, framing);
  auto checked = http::check_request_head(text);
  CHECK(checked.has_value() == !rejected.has_value());
  if (!checked) {
    CHECK(!checked.error().message.empty());
    return 0;
  }
  CHECK(whole.state == http::HeadScan::State::complete && whole.size == size);
  CHECK(!(framing.chunked && framing.length));
  CHECK(head.target.starts_with('/') && head.headers.size() <= http::kMaxHeaderFields);
  same_to_beast(text, head, framing);
  return 0;
}
