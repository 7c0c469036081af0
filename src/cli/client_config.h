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

// The text with a context put in, taken out, or chosen ("" for none); everything else as it was.
Result<std::string> put_context(std::string_view text, std::string_view name, const Context& context);
Result<std::string> remove_context(std::string_view text, std::string_view name);
Result<std::string> choose_context(std::string_view text, std::string_view name);

// Keys are in it: for nobody else, and complete or not at all.
Result<void> write_client_config(const std::string& path, std::string_view text);

std::string masked(const std::string& key);  // for people to recognize

extern const std::string_view kInitialClientConfig;

}  // namespace osb::cli
