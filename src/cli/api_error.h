#pragma once

// An error answer of a server as an Error whose message is ready to print: code, what happened, cause,
// remedy.

#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::cli {

Error api_error(int status, std::string_view body);

// "osb: <message>", on standard error.
void print_error(std::string_view program, const Error& error);

}  // namespace osb::cli
