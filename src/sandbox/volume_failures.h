#pragma once

// Everything that can go wrong with volumes. `field` is the part of the request that it is about.

#include <string>
#include <string_view>

#include "base/error.h"
#include "sandbox/failure.h"

namespace osb::sandbox {

Failure duplicate_volume(std::string_view field);
Failure invalid_mount_path(std::string_view field, std::string_view why);
Failure invalid_sub_path(std::string_view field, std::string_view why);
Failure invalid_host_path(std::string_view field, std::string_view why);
Failure host_path_not_allowed(std::string_view field, std::string_view why);
// The same of the host's own judgement; the error names the part of the request.
Failure host_path_refused(const Error& error);
Failure sub_path_refused(const Error& error);
Failure sub_path_driver(const Error& error);
Failure host_path_failed(const Error& error);
Failure volume_missing(const Error& error);  // a create wants one that has to be there
Failure volume_failed(const Error& error);

Failure volume_not_found(std::string_view name);
Failure volume_in_use(std::string_view name, std::string_view why);

}  // namespace osb::sandbox
