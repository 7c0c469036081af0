#pragma once

// A sandbox's record: a few bytes that the server wants to find again should it lose its database. They lie
// in the sandbox's own directory, where nobody but root comes, and go with it. What they mean is the server's
// business.
//
// Nobody waits for the disk: a record is of use only as long as its sandbox runs, and that ends with the
// boot.

#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::launcher {

inline constexpr size_t kMaxRecord = 64 * 1024;

// `directory` is the sandbox's. A record that exists is replaced as a whole.
Result<void> write_record(int directory, std::string_view record);
// "" when there is none.
Result<std::string> read_record(int directory);
// Before another sandbox gets the directory.
Result<void> remove_record(int directory);

}  // namespace osb::launcher
