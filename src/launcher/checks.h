#pragma once

// What the launcher refuses. The server is not trusted with the host: a plan may name only sources from the
// launcher's own settings, targets inside the new root, and values in range, in the one order in which the
// kernel's trees and their masks come whole and on top.

#include "base/fd.h"
#include "launcher/plan.h"
#include "launcher/settings.h"

namespace osb::launcher {

// Ids become names of directories and groups: nothing but a UUID passes.
Result<void> check_id(std::string_view id);

// Values only; nothing is looked up.
Result<void> check(const Plan& plan);

// A step that shows a volume: a named one, or a directory of the host.
bool is_volume(const Step& step);
// Values of such a step; nothing is looked up.
Result<void> check_volume(const Step& step);

// Absolute, no empty, "." or ".." component, no trailing slash ("/" itself is fine).
bool is_clean_path(std::string_view path);
bool is_at_or_below(std::string_view path, std::string_view top);

// A directory or file of the host that a sandbox may be shown. `path` must be one of the settings' sources or
// of the state directory's images, or lie below one, without any symlink on the way below.
Result<Fd> open_source(const Settings& settings, const std::string& path);

}  // namespace osb::launcher
