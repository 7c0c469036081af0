#pragma once

// multipart/form-data as a stream: parts one after the other, each with constant memory. Bounded: head of a
// part 16 KiB, 1000 parts.

#include "http/server.h"

namespace osb::http {

struct PartHead {
  std::string name;                     // form field
  std::optional<std::string> filename;  // quoted, unquoted or RFC 5987 form
  Headers headers;
};

class MultipartReader {
 public:
  // The boundary of a Content-Type value; an error when it is not multipart/form-data or has no legal
  // boundary.
  static Result<std::string> boundary_of(std::string_view content_type);

  MultipartReader(BodyReader& body, std::string boundary);
  ~MultipartReader();
  // The next part, or nothing after the last. Skips what is unread of the current one.
  Task<Result<std::optional<PartHead>>> next();
  // Bytes of the current part; 0 at its end.
  Task<Result<size_t>> read_some(std::span<char> into);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace osb::http
