#pragma once

// Directories of the host that sandboxes are given: those of the operator's allow-list and what lies below.
//
// A path is looked up below the directory of the list, by the kernel and at once: a link on the way is
// followed as long as it stays below, and none leads out. What is mounted is what was found then.

#include <string>

#include "base/fd.h"
#include "launcher/settings.h"

namespace osb::launcher {

enum class Missing { refused, made };

// Code::permission_denied: not on the list, or part of the service's own files. Code::invalid_argument: a
// link that leads out, or a file, is on the way. Code::not_found, unless it is to be made: as whoever owns
// the place.
Result<Fd> open_host_path(const Settings& settings, const std::string& path, Missing missing);

// The directory `path` below another; the same errors. Those that are missing are made as the owners of
// their parents.
Result<Fd> open_below(const Settings& settings, Fd top, std::string_view path, Missing missing);

}  // namespace osb::launcher
