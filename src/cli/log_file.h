#pragma once

// The log in a file of its own: a small process reads what every process of the service writes to standard
// error and appends it to a file that rotates. It is no child of the service, hears no signal that ends the
// service, and ends when the last of those processes has: so the last lines are kept, and a service that is
// started again finds a file that nobody else writes to.

#include "cli/rotating_file.h"

namespace osb::cli {

// From now on standard output and standard error of this process, and of what it becomes, are that file.
// Before there is a second thread.
Result<void> log_to(RotatingFile file);

// Lines as they come, until the end; what never ends in a line feed is cut into pieces.
void copy_lines(int from, RotatingFile& to);

}  // namespace osb::cli
