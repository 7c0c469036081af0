#pragma once

// The processes that bring images here: one of root's for each order, which the launcher starts, and one of
// nobody's that speaks to registries, which the first one starts.

#include "cli/arguments.h"

namespace osb::cli {

// Exit statuses.
int run_image_keeper(const ImageKeeperOptions& options);
int run_image_fetcher();

}  // namespace osb::cli
