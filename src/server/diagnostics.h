#pragma once

// What is known about a sandbox, as text for people. Events stay readable for a day after the sandbox is
// gone.

#include <string>
#include <vector>

#include "store/events.h"
#include "store/sandboxes.h"

namespace osb::server {

std::string events_text(const std::vector<store::SandboxEvent>& events);  // one line each, or "(no events)"
std::string inspect_text(const store::Sandbox& row, std::string_view runtime);
std::string logs_text();  // the output of the entry process is not collected yet

struct InlineDiagnostics {
  std::string sandbox_id, kind, scope, content, warning;
  bool truncated = false;
};
std::string to_json(const InlineDiagnostics& diagnostics);

}  // namespace osb::server
