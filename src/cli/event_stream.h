#pragma once

// What execd says while a command or a cell runs: one JSON object per line, with blank lines between. Bytes
// go in as they come.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/picture.h"

namespace osb::cli {

struct StreamEvent {
  enum class Kind { started, output, errors, result, failed, complete };
  Kind kind = Kind::complete;
  // started: the id; output, errors: one line with its line end, of a cell as it was written; result: as
  // plain text; failed: the value (an exit code, or words)
  std::string text;
  std::string detail;  // failed: for people, "signal: killed"
  std::string name;    // failed, of a cell: the error's
  std::vector<std::string> traceback{};
  Picture picture{};  // result: one that it has besides the text
};

// Code::corrupt for bytes that are no event stream; Code::too_large for an endless line.
class EventParser {
 public:
  enum class Source { command, cell };
  explicit EventParser(Source source = Source::command) : source_(source) {}
  Result<std::vector<StreamEvent>> feed(std::string_view bytes);

 private:
  Source source_;
  std::string line_;
};

// How a command ended, in the words of a shell: its exit code, 128+N after signal N, 124 when its time was
// up, 127 when there is no such program, 126 when it cannot be executed.
struct CommandEnd {
  int status = 0;
  std::string problem;  // for people; empty when the status says it all
};
CommandEnd end_from(const StreamEvent& last, std::optional<std::chrono::milliseconds> limit,
                    std::chrono::milliseconds elapsed);

}  // namespace osb::cli
