#pragma once

// What a command line that cannot be used, or that asks for help, ends with.

#include <CLI/CLI.hpp>
#include <string_view>

#include "cli/arguments.h"

namespace osb::cli {

// `see` is the command whose help to read; its first word is the program.
PrintAndExit usage(std::string_view message, std::string_view see);

// Help, version and mistakes all end parsing with an exception; this is what it says.
PrintAndExit stopped(const CLI::App& app, const CLI::ParseError& e, std::string_view see);

}  // namespace osb::cli
