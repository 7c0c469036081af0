#pragma once

// What a process has used of its executable and its libraries stays resident although a start uses much that
// is never needed again: the parser of the configuration, of the command line, of recovery.

namespace osb::sys {

// Takes all of it out of the process's memory. The pages stay in the kernel's cache; those that are needed
// come back one by one, without a read. Only what cannot have been written: code and constants.
void forget_code_pages();

}  // namespace osb::sys
