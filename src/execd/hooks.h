#pragma once

// What a create asks to be run beside the entry process: one command before it, and others on a schedule. It
// comes as JSON in a variable of the entry process's environment, which is taken out of it:
//   {"preStart":{"command":["make"],"timeoutSeconds":60},
//    "periodic":[{"name":"sync","schedule":"*/5 * * * *","command":["sync"],"timeoutSeconds":30}]}

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hooks_variable.h"
#include "base/schedule.h"
#include "execd/core.h"
#include "execd/entry_log.h"

namespace osb::execd {

inline constexpr std::chrono::seconds kHookTimeout{60};

struct Hook {
  std::vector<std::string> argv;
  std::chrono::seconds timeout = kHookTimeout;
  std::string name = {};  // of periodic ones, as the rest
  std::optional<Schedule> schedule = {};
};

struct Hooks {
  std::optional<Hook> pre_start = {};
  std::vector<Hook> periodic = {};
};
Result<Hooks> parse_hooks(std::string_view json);  // "" has none

// Runs it whenever it is due, one run at a time, until the sandbox ends. What it writes goes to the log of
// the entry process, with a line for a run that failed.
io::Task<> run_periodic(Core& core, Hook hook, std::shared_ptr<Fd> output, std::shared_ptr<EntryOutput> log);

// A hook's process when its time is up; nothing when it has ended before.
io::Task<> end_in_time(pid_t group, std::chrono::seconds timeout, std::shared_ptr<bool> ended);

}  // namespace osb::execd
