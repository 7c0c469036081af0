#pragma once

// Variables with which an image or a request chooses how its entry command is started (execd/bootstrap.h).

namespace osb {

inline constexpr char kPreScriptVariable[] = "EXECD_BOOTSTRAP_PRE_SCRIPT",
                      kEntryLineVariable[] = "BOOTSTRAP_CMD", kEntryShellVariable[] = "BOOTSTRAP_SHELL";

}  // namespace osb
