// What a notebook server sends on a kernel's channel, and the address under which it is found.
#include "interpreter/jupyter_message.h"

#include "check.h"
#include "interpreter/jupyter_server.h"
#include "json/decode.h"

using namespace osb;
using namespace osb::interpreter;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  if (auto message = parse_jupyter(text)) {
    CHECK(message->text.size() <= size && message->parent.size() <= size);
  } else {
    CHECK(message.error().code == Code::corrupt);
  }
  if (auto address = parse_jupyter_url(text, "token")) {
    CHECK(!address->host.empty() && address->port != 0 && !address->base.ends_with('/'));
  }
  CHECK(json::parse(encode_execute("id", "session", text, false)));
  return 0;
}
