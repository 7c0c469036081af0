#pragma once

// What execd does to its own process before anything else.

#include "base/error.h"
#include "execd/options.h"

namespace osb::execd {

// Not dumpable (nobody in the sandbox may read its memory or descriptors, not even the same user), standard
// descriptors open, default signal dispositions except SIGPIPE, as many open files as allowed, orphans come
// to this process.
void set_up_process();

// EXECD_LOG_FILE, OPENSANDBOX_LOG_OUTPUT and the level. The log is always descriptor 2.
void set_up_log(const Options& options, const Environment& env);

// EXECD_CLONE3_COMPAT: clone3 answers "not implemented" from here on, for container managers whose filters
// break programs that use it. Code::invalid_argument for a value that means nothing.
Result<void> set_up_clone3(const Environment& env);

}  // namespace osb::execd
