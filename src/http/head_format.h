#pragma once

// Heads to bytes. Field names and values come from handlers and from upstreams: one that could break out of
// its line is refused, and the fields that frame the message are ours alone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace osb::http {

struct BodyFraming {
  enum class Kind { none, length, chunked, until_close } kind = Kind::none;
  uint64_t length = 0;
};

struct ResponseFormat {
  int status = 200;
  const Headers& headers;
  const std::vector<HeaderField>& always;  // added unless `headers` has the name
  BodyFraming body;
  bool close = false;
};
// Code::internal for an illegal field; `out` is then to be thrown away. Replaces what is in `out`.
Result<void> format_response_head(const ResponseFormat& response, std::string& out);

// Code::invalid_argument for an illegal method, target or field.
Result<void> format_request_head(const RequestHead& head, BodyFraming body, std::string& out);

// Now, as in a Date field.
std::string_view http_date();

// "<size in hexadecimal>\r\n"; the text lives in the caller's memory.
using ChunkPrefix = char[20];
std::string_view chunk_prefix(uint64_t size, ChunkPrefix& memory);

}  // namespace osb::http
