#include "cli/mcp_arguments.h"

#include <cmath>

namespace osb::cli {

Result<void> McpArguments::ok() const {
  if (issues.empty()) return {};
  std::string message = "the arguments are wrong";
  for (const json::Issue& issue : issues.list())
    message += "\n  " + json::to_string(issue.path) + ": " + issue.message;
  return fail(Code::invalid_argument, std::move(message));
}

std::optional<double> number_of(json::Field field) {
  if (!field.present()) return std::nullopt;
  if (const double* number = field.raw()->if_double(); number && std::isfinite(*number)) return *number;
  auto whole = field.integer();
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

}  // namespace osb::cli
