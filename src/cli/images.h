#pragma once

// `osb images import`, and `ls` and `rm` with --config or --state-dir: what is done on the service's host, as
// root, with the store below its state directory. The service need not run.

#include <map>
#include <string>

#include "base/clock.h"
#include "cli/arguments.h"
#include "image/index.h"

namespace osb::cli {

// Exit statuses.
int import_image(const ImportImageOptions& options);
int list_images(const LsImagesOptions& options);
int remove_images(const RmImagesOptions& options);

// What `osb images ls` prints: the image that is always there, those that the configuration names with their
// directories, those that were imported.
std::string image_table(const image::Index& index, const std::map<std::string, std::string>& directories,
                        WallTime now);

}  // namespace osb::cli
