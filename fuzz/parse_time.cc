// A time that is accepted can be printed, and reads back as the same; nothing is accepted that has a strange
// byte.
#include "base/clock.h"
#include "check.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  auto time = parse_time(text);
  if (!time) {
    CHECK(time.error().code == Code::invalid_argument);
    return 0;
  }
  CHECK(text.size() >= 19 && text.size() <= 35);
  CHECK(text.find_first_not_of("0123456789-+:. TtZz") == text.npos);
  std::string printed = format_api_time(*time);
  CHECK(printed.size() == 20 || printed.size() == 27);
  CHECK(parse_time(printed) == *time);
  CHECK(parse_time(format_time(*time, 6)) == *time);
  CHECK(format_api_time(parse_time(printed).value()) == printed);
  return 0;
}
