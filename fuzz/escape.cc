// Whatever the bytes: the result is one JSON string on one line without markup, and it means the repaired
// text.
#include "json/escape.h"

#include "check.h"
#include "json/decode.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view bytes = fuzz::text_of(data, size);
  std::string guarded, minimal;
  json::append_string(guarded, bytes);
  json::append_minimal_string(minimal, bytes);

  for (unsigned char c : guarded) CHECK(c >= 0x20 && c != '<' && c != '>' && c != '&');
  for (std::string_view line_end : {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"})
    CHECK(!guarded.contains(line_end));
  CHECK(guarded.size() <= 6 * size + 2 && minimal.size() <= guarded.size());

  auto value = json::parse(guarded);
  CHECK(value && value->is_string());
  CHECK(json::parse(minimal) == *value);
  std::string_view repaired = value->get_string();
  CHECK(repaired.size() <= 3 * size);

  // What has been repaired is left alone, and what parses as it stands needed no repair.
  std::string again;
  json::append_string(again, repaired);
  CHECK(json::parse(again) == *value);
  std::string quoted = "\"" + std::string(bytes) + "\"";
  if (bytes.find_first_of("\"\\") == bytes.npos && json::parse(quoted)) CHECK(repaired == bytes);
  return 0;
}
