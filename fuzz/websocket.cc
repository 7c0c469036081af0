// A frame head is parsed from exactly its own bytes, and what was parsed is written back as the same bytes:
// there is only one way to say a thing. Close frames and texts must not crash.
#include "base/utf8.h"
#include "check.h"
#include "http/websocket_frame.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  for (http::Role role : {http::Role::server, http::Role::client}) {
    auto head = http::parse_frame_head(text, role);
    if (!head || !*head) continue;
    CHECK((*head)->size <= size);
    std::string out;
    http::append_frame_head(out, **head);
    CHECK(out == text.substr(0, (*head)->size));
    for (size_t n = 0; n < out.size(); ++n) {
      auto shorter = http::parse_frame_head(text.substr(0, n), role);
      CHECK(shorter && !*shorter);
    }
  }
  if (auto reason = http::parse_close(text); reason && size > 0) {
    CHECK(http::may_be_sent(reason->code));
    CHECK(is_utf8(reason->text));
  }
  if (http::is_websocket_key(text)) CHECK(http::websocket_accept(text).size() == 28);
  return 0;
}
