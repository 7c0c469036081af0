// A chunked body gives the same bytes, the same end and the same error in whatever pieces it arrives and is
// taken. A body that our strict decoder accepts means the same to an independent parser. The first two bytes
// are sizes of pieces.
#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/src.hpp>

#include "check.h"
#include "http/body_decoder.h"

using namespace osb;
namespace beast = boost::beast;

namespace {

struct Outcome {
  std::string payload;
  size_t consumed = 0;
  bool done = false, failed = false;
  bool operator==(const Outcome&) const = default;
};

Outcome decode(std::string_view input, size_t step, size_t room) {
  Outcome out;
  http::BodyDecoder decoder = http::BodyDecoder::chunked();
  std::string buffer(room, '\0');
  size_t available = 0;
  while (!decoder.done() && !out.failed) {
    auto result = decoder.decode(input.substr(out.consumed, available - out.consumed), buffer);
    out.failed = !result;
    if (!result) break;
    CHECK(result->produced <= room);
    out.payload.append(buffer, 0, result->produced);
    out.consumed += result->consumed;
    CHECK(out.consumed <= available);
    if (result->consumed > 0) continue;
    if (available == input.size()) break;
    available = std::min(input.size(), available + step);
  }
  out.done = decoder.done();
  if (out.failed) out.consumed = 0, out.payload.clear();  // how far it came depends on the pieces
  return out;
}

void check_against_beast(std::string_view input, const Outcome& ours) {
  std::string message = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  size_t head = message.size();
  message.append(input);
  beast::http::request_parser<beast::http::string_body> parser;
  parser.body_limit(boost::none);
  parser.eager(true);
  beast::error_code error;
  size_t used = parser.put(boost::asio::buffer(message), error);
  if (error) return;  // it refuses the body; that is its right
  CHECK(parser.is_done());
  CHECK(parser.get().body() == ours.payload);
  CHECK(used == head + ours.consumed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 2) return 0;
  std::string_view input = fuzz::text_of(data + 2, size - 2);
  Outcome whole = decode(input, input.size() + 1, input.size() + 1);
  CHECK(decode(input, 1 + data[0], 1 + data[1]) == whole);
  CHECK(decode(input, 1, 1) == whole);
  CHECK(!(whole.done && whole.failed));
  if (whole.done) check_against_beast(input, whole);
  return 0;
}
