#include "cli/usage.h"

#include <fmt/format.h>

#include <sstream>

namespace osb::cli {
namespace {

constexpr int kUsage = 2;  // exit status of a wrong command line

}  // namespace

PrintAndExit usage(std::string_view message, std::string_view see) {
  std::string_view program = see.substr(0, see.find(' '));
  return {
      .out = "", .err = fmt::format("{}: {}\n  see: {} --help\n", program, message, see), .status = kUsage};
}

PrintAndExit stopped(const CLI::App& app, const CLI::ParseError& e, std::string_view see) {
  std::ostringstream out, err;
  int status = app.exit(e, out, err);
  if (status == 0) return {.out = out.str(), .err = "", .status = 0};
  return usage(e.what(), see);
}

}  // namespace osb::cli
