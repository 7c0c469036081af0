#pragma once

// `opensandbox-server init-config`.

#include "cli/arguments.h"

namespace osb::cli {

// Writes the file and prints its path; an existing one stays unless forced. The exit status.
int write_initial_config(const InitConfigOptions& options);

// Makes missing parent directories. Code::already_exists unless `force`; a forced write replaces the file as
// a whole.
Result<void> write_config_file(const std::string& path, std::string_view text, bool force);

}  // namespace osb::cli
