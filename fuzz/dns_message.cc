// DNS messages, from sandboxes and from name servers. What is taken is written anew and must then be read as
// the same.

#include "egress/dns_message.h"

#include "base/strings.h"
#include "check.h"

using namespace osb::egress;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view input = osb::fuzz::text_of(data, size);
  static const DnsQuestion kAsked =
      parse_question(std::string_view("\0\7\1\0\0\1\0\0\0\0\0\0\1a\4test\0\0\1\0\1", 24))->question;
  if (auto parsed = parse_question(input)) {
    CHECK(parsed->question.wire_name.size() <= 255);
    CHECK(encode_answer(parsed->question, kDnsNoName).size() >= 12);
    if (parsed->refusal == kDnsNoError) {
      auto again = parse_question(encode_question(parsed->question, 9));
      // It leaves in lower case.
      CHECK(again && again->refusal == kDnsNoError &&
            again->question.name == osb::to_lower(parsed->question.name));
    }
  }
  DnsQuestion asked = kAsked;
  if (auto parsed = parse_question(input.substr(0, input.size() / 2));
      parsed && parsed->refusal == kDnsNoError)
    asked = parsed->question;
  uint16_t id = size >= 2 ? static_cast<uint16_t>(data[0] << 8 | data[1]) : 0;
  auto answer = parse_answer(input, asked, id);
  if (!answer) return 0;
  std::string out = encode_answer(asked, *answer, 65535);
  CHECK(out.size() <= 65535);
  CHECK(parse_answer(out, asked, asked.id));
  CHECK(encode_answer(asked, *answer, 512).size() <= 512);
  return 0;
}
