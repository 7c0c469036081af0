#pragma once

// Heads from bytes, in the one strict way that head_check.h describes. There is one pass and one reading:
// what is refused and what a handler sees come out of the same code, so the two cannot disagree.

#include <cstdint>
#include <optional>
#include <string_view>

#include "http/message.h"

namespace osb::http {

// Where the head ends in bytes that are still arriving.
struct HeadScan {
  enum class State { incomplete, complete, malformed } state = State::incomplete;
  size_t size = 0;          // complete: bytes of the head with its empty line
  std::string_view reason;  // malformed
};
// `scanned` starts as 0 and is kept between calls, so that no byte is looked at twice. A bare LF or a first
// byte that starts no head is reported at once: waiting for CRLF CRLF would wait for ever.
HeadScan find_head_end(std::string_view bytes, size_t& scanned);

struct Rejection {
  int status;  // what a server answers
  std::string_view reason;
};

// What the fields of a head say about the body and the connection.
struct Framing {
  std::optional<uint64_t> length;
  bool chunked = false;
  bool close = false;            // Connection: close, or HTTP/1.0
  bool upgrade = false;          // Connection: upgrade, and an Upgrade field
  bool expect_continue = false;  // Expect: 100-continue, in HTTP/1.1
};

// `head` is a whole head up to and including the empty line. Nothing in `out` counts after a rejection.
std::optional<Rejection> parse_request_head(std::string_view head, RequestHead& out, Framing& framing);
std::optional<Rejection> parse_response_head(std::string_view head, ResponseHead& out, Framing& framing);

// The same rules for one field, used for trailers and for what handlers hand to us.
bool is_token(std::string_view text);        // not empty
bool is_field_value(std::string_view text);  // no control bytes but tabs; may be empty
bool is_request_target(std::string_view text);
std::optional<Rejection> split_field(std::string_view line, std::string_view& name, std::string_view& value);

// Whether a comma-separated list, as in Connection, contains the word in any case.
bool list_contains(std::string_view list, std::string_view word);

}  // namespace osb::http
