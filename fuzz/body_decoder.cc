// A chunked body gives the same bytes, the same error and the same end in whatever pieces it arrives, and
// never more bytes than it was given. The first two bytes of the input are the sizes of the pieces in and
// out.
#include "http/body_decoder.h"

#include <algorithm>
#include <string>

#include "check.h"

using namespace osb;

namespace {

struct Outcome {
  std::string payload, error;
  size_t consumed = 0;
  bool done = false;
  bool operator==(const Outcome&) const = default;
};

Outcome decode(std::string_view bytes, size_t in, size_t out) {
  http::BodyDecoder decoder = http::BodyDecoder::chunked();
  std::string buffer(out, '\0');
  Outcome outcome;
  size_t offered = 0;
  while (!decoder.done() && outcome.error.empty()) {
    if (outcome.consumed == offered) {
      if (offered == bytes.size()) break;
      offered += std::min(in, bytes.size() - offered);
    }
    auto step = decoder.decode(bytes.substr(outcome.consumed, offered - outcome.consumed), buffer);
    if (!step) {
      outcome.error = step.error().message;
      break;
    }
    CHECK(step->consumed > 0 && step->produced <= step->consumed && step->produced <= out);
    outcome.consumed += step->consumed;
    outcome.payload.append(buffer, 0, step->produced);
  }
  outcome.done = decoder.done();
  if (outcome.error.empty()) CHECK(decoder.end_of_stream().has_value() == outcome.done);
  if (!outcome.error.empty())
    outcome.consumed = 0, outcome.payload.clear();  // what came before it depends on the pieces
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 2) return 0;
  std::string_view body = fuzz::text_of(data, size).substr(2);
  Outcome whole = decode(body, SIZE_MAX, 64 * 1024);
  CHECK(decode(body, 1 + data[0], 1 + data[1]) == whole);
  CHECK(decode(body, 1, 1) == whole);
  CHECK(whole.payload.size() <= body.size());
  return 0;
}
