#pragma once

// What a kernel says (kernels/README.md), decoded.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace osb::interpreter {

inline constexpr size_t kMaxFrame = 64 << 20;  // both ways

struct KernelMessage {
  enum class Op { ready, result, display, error, done, modules, forked, stale, unknown };
  Op op = Op::unknown;
  std::string id;  // of the run
  int64_t count = 0;
  std::vector<std::pair<std::string, std::string>> data;  // MIME type, value
  std::string ename, evalue;
  std::vector<std::string> traceback;
  std::vector<std::string> names;  // of modules
  int64_t pid = 0;
  bool wait = false;  // it goes on when it has been answered
};

// Lenient about what may be missing, strict about types. Code::corrupt for anything that is no such object.
Result<KernelMessage> parse_message(std::string_view json);

// The answer to a message that waits; always these bytes.
inline constexpr std::string_view kShown = R"({"op":"shown"})";

// {"op":"run","id":"...","code":"..."}: compact, strings only, as kernels may rely on.
std::string encode_run(std::string_view id, std::string_view code);
// {"op":"interrupt","id":"..."}
std::string encode_interrupt(std::string_view id);

}  // namespace osb::interpreter
