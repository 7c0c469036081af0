#pragma once

// `osb commit`: a sandbox or a snapshot as an image.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

io::Task<int> commit_image(CommitImageOptions options);

}  // namespace osb::cli
