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

// What a bind shows: open_volume() for what lies below a directory for volumes or can be written, else
// open_source().
Result<Fd> open_bind(const Settings& settings, const Step& step);

// A directory that a sandbox may write to, strictly below one of the settings' directories for volumes, which
// belongs to root alone: inside, the sandbox's root is root of these files, so others of the host must not
// come near a set-user-id program that it leaves there. No symlink anywhere below.
Result<Fd> open_volume(const Settings& settings, const std::string& path);

// A directory or file of the host that a sandbox may be shown. `path` must be one of the settings' sources or
// of the state directory's images, or lie below one, without any symlink on the way below.
Result<Fd> open_source(const Settings& settings, const std::string& path);

}  // namespace osb::launcher
