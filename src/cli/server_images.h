#pragma once

// `osb images pull`, `push`, `inspect`, `prune`, `ls` and `rm`: what goes through a server.

#include "cli/arguments.h"
#include "io/task.h"

namespace osb::cli {

// Exit statuses.
io::Task<int> pull_image(PullImageOptions options);
io::Task<int> push_image(PushImageOptions options);
io::Task<int> list_server_images(LsImagesOptions options);
io::Task<int> remove_server_images(RmImagesOptions options);
io::Task<int> inspect_image(InspectImageOptions options);
io::Task<int> prune_images(PruneImagesOptions options);

}  // namespace osb::cli
