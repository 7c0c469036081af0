#pragma once

// What is known about a sandbox, as text for people. Events stay readable for a day after the sandbox is
// gone.

#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "sandbox/sandbox.h"

namespace osb::server {

std::string events_text(const std::vector<sandbox::Event>& events);  // one line each, or "(no events)"
std::string inspect_text(const sandbox::Sandbox& row, const runtime::Runtime& runtime);

struct Logs {
  std::string text;  // "(no logs)" when there is nothing
  bool truncated = false;
  std::string warning = {};  // why it may not be all
};
// The last `tail` lines of an entry process's output that are not older than `since`. Every line starts with
// its time.
Logs select_logs(const sandbox::Output& output, int64_t tail, std::optional<WallTime> since = {});
// "30s", "5m", "2h", "1d" before `now`; ten minutes for what cannot be read.
WallTime parse_since(std::string_view text, WallTime now);

struct InlineDiagnostics {
  std::string sandbox_id, kind, scope, content, warning;
  bool truncated = false;
};
std::string to_json(const InlineDiagnostics& diagnostics);

}  // namespace osb::server
