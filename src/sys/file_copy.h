#pragma once

// The data of one file into another: shared where the file system can, else copied without its holes.

#include <sys/types.h>

#include "base/error.h"

namespace osb::sys {

// `to` is empty. `size` and `blocks` (of 512 bytes) are what stat says of `from`.
Result<void> copy_data(int from, int to, off_t size, blkcnt_t blocks);

// Whether both have the same bytes; both are of `size`.
Result<bool> same_data(int one, int other, off_t size);

}  // namespace osb::sys
