#pragma once

// The Range header of a download.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace osb::execd {

struct ByteRange {
  uint64_t first = 0, last = 0;  // both inclusive
  bool operator==(const ByteRange&) const = default;
};

// The first satisfiable range of "bytes=a-b,c-,-n" in a file of `size` bytes. Nothing inside when none is
// satisfiable (416), Code::invalid_argument when the header is no byte range at all.
Result<std::optional<ByteRange>> parse_range(std::string_view header, uint64_t size);

}  // namespace osb::execd
