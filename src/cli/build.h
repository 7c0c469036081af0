#pragma once

// `osb images build`: a Dockerfile, step by step in sandboxes of the server, with no more rights than any
// client has.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

io::Task<int> build_image(BuildImageOptions options);

// A step whose files are kept is a snapshot with this name and its key behind it.
inline constexpr char kBuildCache[] = "osb-build:";

}  // namespace osb::cli
