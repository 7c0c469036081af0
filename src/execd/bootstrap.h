#pragma once

// What the original's bootstrap script reads from the environment of a sandbox, for who is used to it.
// EXECD_BOOTSTRAP_PRE_SCRIPT: a file that a shell sources before it becomes the entry command. BOOTSTRAP_CMD:
// a line for a shell, instead of the entry command; so is `-c LINE` as that command. BOOTSTRAP_SHELL: the
// shell for both; bash or sh without it.
//
// It is all done by the entry process itself, with its rights and in its place. Without these variables no
// shell is needed.

#include <string>
#include <vector>

#include "base/error.h"
#include "execd/environment.h"

namespace osb::execd {

// What to execute for this entry command. Code::not_found: there is no shell for it.
Result<std::vector<std::string>> bootstrap(std::vector<std::string> argv, const Environment& env);

}  // namespace osb::execd
