#pragma once

// The user's own file of client settings: ~/.opensandbox/config.toml.

#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/client_settings.h"

namespace osb::cli {

std::string default_client_config();  // where it is; "" without a home

// Puts what the file says over what is there. Keys that are not known are left alone; a value of the wrong
// kind is an error.
Result<void> read_client_config(std::string_view text, const std::string& path, ClientSettings& into);

// The text with one value set, everything else as it was, comments included. Code::invalid_argument when the
// key is no section.field. The value becomes a boolean or a number when it looks like one.
Result<std::string> set_in_client_config(std::string_view text, std::string_view key, std::string_view value);

extern const std::string_view kInitialClientConfig;

}  // namespace osb::cli
