#pragma once

// One call about one sandbox: `osb inspect | logs | pause | resume | renew`.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

io::Task<int> manage_sandbox(ManageOptions options);

}  // namespace osb::cli
