#pragma once

// `osb doctor --attack`: tries to break out of a throw-away sandbox of the running server, one attempt after
// the other.

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// `probe` is the static executable osb-probe. The exit status: 0 when every attempt was refused or does not
// apply here.
io::Task<int> attack_sandbox(DoctorOptions options, std::string_view probe);

struct Attempt {
  std::string name, what;
};
// Lines of `osb-probe list`: name, a tab, what it tries.
Result<std::vector<Attempt>> parse_attempts(std::string_view text);

enum class Verdict { refused, breach, not_applicable, unclear };
Verdict verdict_of(int exit_status);

}  // namespace osb::cli
