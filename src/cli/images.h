#pragma once

// `osb images`: what is done on the service's host, as root, with the store below its state directory. The
// service need not run.

#include "base/clock.h"
#include "cli/arguments.h"
#include "image/index.h"

namespace osb::cli {

// Exit statuses.
int import_image(const ImportImageOptions& options);
int list_images(const LsImagesOptions& options);
int remove_images(const RmImagesOptions& options);

// What `osb images ls` prints.
std::string image_table(const image::Index& index, WallTime now);

}  // namespace osb::cli
