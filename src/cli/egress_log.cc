#include "cli/egress_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/api.h"
#include "cli/api_error.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

// Sandboxes choose the names in it: control characters do not reach a terminal.
std::string clean(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

}  // namespace

std::string egress_line(std::string_view record) {
  auto value = json::parse(record);
  if (!value) return clean(std::string(record));
  json::Issues ignored;
  auto field = json::Field::root(*value, ignored, "record");
  auto text = [&](const char* name) { return clean(field[name].string().value_or("")); };
  std::string where = text("name"), address = text("address");
  if (auto port = field["port"].integer()) address += fmt::format(" port {}", *port);
  if (!address.empty() && !where.empty()) where += " (" + address + ")";
  if (where.empty()) where = address;
  std::string out =
      fmt::format("{} {:<7} {:<10} {}: {}", text("time"), text("outcome"), text("kind"), where, text("rule"));
  if (auto sent = field["sentBytes"].integer())
    out += fmt::format(", {} bytes out, {} in", *sent, field["receivedBytes"].integer().value_or(0));
  if (auto took = field["durationMs"].integer()) out += fmt::format(", {} ms", *took);
  return out;
}

io::Task<int> print_egress_log(EgressLogOptions options) {
  Api api(options.connection);
  auto read = co_await api.egress_log(options.id, options.follow, [&](std::string_view line) -> Result<void> {
    if (line.empty()) return {};
    std::string shown = options.json ? std::string(line) : egress_line(line);
    if (std::puts(shown.c_str()) < 0 || std::fflush(stdout) != 0) return fail_errno("write");
    return {};
  });
  if (read) co_return 0;
  print_error("osb", read.error());
  co_return 1;
}

}  // namespace osb::cli
