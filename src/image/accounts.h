#pragma once

// Who the user of an image is, by the image's own /etc/passwd and /etc/group.

#include <string>
#include <vector>

#include "image/image.h"

namespace osb::image {

// Sets uid, gid, user_name and home of `config` from its `user`: "", "1000", "app", "1000:100", "app:staff".
// A name that the files do not have is Code::invalid_argument.
Result<void> resolve_user(ImageConfig& config, std::string_view passwd, std::string_view group);

// A small file of an image whose layers lie in these directories, lowest first. "" when no layer has it, or
// when it is not an ordinary file.
Result<std::string> read_from_layers(const std::vector<std::string>& layers, const std::string& path);

}  // namespace osb::image
