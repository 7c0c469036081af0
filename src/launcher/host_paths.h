#pragma once

// Directories of the host that sandboxes are given: those of the operator's allow-list and what lies below.
//
// A path is looked up once, by descriptor and one name at a time, and no link on the way below the allow-list
// is followed: what others have put there leads nowhere. What is mounted is what was looked at.

#include <string>

#include "base/fd.h"
#include "launcher/settings.h"

namespace osb::launcher {

enum class Missing { refused, made };

// Code::permission_denied: not on the list, or part of the service's own files. Code::invalid_argument: a
// link or a file is on the way. Code::not_found, unless it is to be made: as whoever owns the place.
Result<Fd> open_host_path(const Settings& settings, const std::string& path, Missing missing);

// The directory `path` below another; the same errors. Those that are missing are made as the owners of
// their parents.
Result<Fd> open_below(const Settings& settings, Fd top, std::string_view path, Missing missing);

}  // namespace osb::launcher
