#include "cli/values.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/strings.h"

namespace osb::cli {
namespace {

using std::chrono::milliseconds;

std::optional<int64_t> unit_ms(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s") return 1000;
  if (unit == "m") return 60'000;
  if (unit == "h") return 3'600'000;
  if (unit == "d") return 86'400'000;
  return std::nullopt;
}

std::unexpected<Error> bad_duration(std::string_view text) {
  return std::unexpected(
      Error{Code::invalid_argument, EINVAL,
            fmt::format("\"{}\" is not a duration; write for example 90s, 10m or 1h30m", text)});
}

constexpr int64_t kMaxMs = 366LL * 86'400'000;

std::unexpected<Error> long_duration(std::string_view text) {
  return fail(Code::invalid_argument, fmt::format("\"{}\" is longer than 366d, the most there is", text));
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
  if (auto plain = parse_number<uint32_t>(text)) {
    if (*plain == 0) return bad_duration(text);
    if (*plain * 1000LL > kMaxMs) return long_duration(text);
    return milliseconds(*plain * 1000LL);
  }
  int64_t total = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t digits = rest.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) return bad_duration(text);
    size_t next = rest.find_first_of("0123456789", digits);
    auto number = parse_number<uint32_t>(rest.substr(0, digits));
    auto unit = unit_ms(rest.substr(digits, next == std::string_view::npos ? next : next - digits));
    if (!number || !unit) return bad_duration(text);
    if (*number > kMaxMs / *unit) return long_duration(text);
    total += *number * *unit;
    rest = next == std::string_view::npos ? "" : rest.substr(next);
  }
  if (total == 0) return bad_duration(text);
  if (total > kMaxMs) return long_duration(text);
  return milliseconds(total);
}

std::string print_duration(milliseconds duration) {
  int64_t ms = duration.count();
  if (ms < 1000) return fmt::format("{} ms", ms);
  int64_t s = ms / 1000;
  if (s < 60)
    return ms % 1000 ? fmt::format("{:.1f} s", static_cast<double>(ms) / 1000) : fmt::format("{}s", s);
  std::string out;
  for (auto [name, size] : {std::pair{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}}) {
    if (s >= size) out += fmt::format("{}{}", s / size, name);
    s %= size;
  }
  return out;
}

Result<VolumeArgument> parse_volume(std::string_view text) {
  auto parts = split(text, ':');
  bool has_mode = parts.size() == 3 && (parts[2] == "ro" || parts[2] == "rw");
  if ((parts.size() != 2 && !has_mode) || parts[0].empty() || !parts[1].starts_with('/'))
    return fail(Code::invalid_argument, "write SOURCE:/PATH, or SOURCE:/PATH:ro");
  return VolumeArgument{std::string(parts[0]), std::string(parts[1]), has_mode && parts[2] == "ro"};
}

Result<uint64_t> parse_bytes(std::string_view text) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto number = parse_number<uint64_t>(text.substr(0, digits));
  std::string_view unit = text.substr(digits);
  uint64_t factor = 0;
  if (unit.empty()) factor = 1;
  constexpr std::string_view kUnits = "kMGT";
  size_t power = unit.empty() ? kUnits.npos : kUnits.find(unit[0] == 'K' ? 'k' : unit[0]);
  if (power != kUnits.npos && (unit.size() == 1 || unit.substr(1) == "i")) {
    factor = 1;
    for (size_t i = 0; i <= power; ++i) factor *= unit.size() == 1 ? 1000 : 1024;
  }
  if (!number || *number == 0 || factor == 0 || *number > INT64_MAX / factor) {
    return fail(Code::invalid_argument,
                fmt::format("\"{}\" is not a number of bytes; write for example 512Mi or 8G", text));
  }
  return *number * factor;
}

Result<std::pair<uint32_t, uint32_t>> parse_user(std::string_view text) {
  size_t colon = text.find(':');
  auto user = parse_number<uint32_t>(text.substr(0, colon));
  auto group = colon == text.npos ? user : parse_number<uint32_t>(text.substr(colon + 1));
  if (!user || !group || *user == UINT32_MAX || *group == UINT32_MAX)
    return fail(Code::invalid_argument, "write numbers: UID or UID:GID");
  return std::pair{*user, *group};
}

std::string print_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.95) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

Result<Variable> parse_variable(std::string_view text) {
  size_t equals = text.find('=');
  std::string name(text.substr(0, equals));
  if (name.empty()) {
    return fail(Code::invalid_argument, fmt::format("\"{}\" has no variable name; write NAME=value", text));
  }
  if (equals != std::string_view::npos) return Variable{name, std::string(text.substr(equals + 1))};
  const char* own = std::getenv(name.c_str());
  if (!own) {
    return fail(Code::invalid_argument,
                fmt::format("{} is not set here; set it or write {}=value", name, name));
  }
  return Variable{name, own};
}

std::string ServerAddress::authority() const {
  bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

Result<ServerAddress> parse_server_address(std::string_view text) {
  auto refuse = [&](std::string_view why) {
    return fail(
        Code::invalid_argument,
        fmt::format("server address \"{}\": {}; write HOST:PORT, for example localhost:8080", text, why));
  };
  std::string_view rest = trim(text);
  ServerAddress address;
  if (size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    address.tls = iequals(rest.substr(0, scheme), "https");
    if (address.tls) address.port = 443;
    if (!address.tls && !iequals(rest.substr(0, scheme), "http")) return refuse("unknown scheme");
    rest.remove_prefix(scheme + 3);
  }
  if (size_t slash = rest.find('/'); slash != std::string_view::npos) {
    std::string_view prefix = rest.substr(slash);
    while (prefix.ends_with('/')) prefix.remove_suffix(1);
    if (prefix.find_first_of("?# \t") != std::string_view::npos)
      return refuse("the path has a query or blanks");
    address.prefix = prefix;
    rest = rest.substr(0, slash);
  }
  std::string_view port;
  if (rest.starts_with('[')) {
    size_t close = rest.find(']');
    if (close == std::string_view::npos) return refuse("] is missing");
    address.host = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (!rest.empty() && rest[0] != ':') return refuse("unexpected text after ]");
    port = rest.empty() ? rest : rest.substr(1);
    if (!rest.empty() && port.empty()) return refuse("the port is empty");
  } else {
    size_t colon = rest.find(':');
    address.host = rest.substr(0, colon);
    if (colon != std::string_view::npos) {
      port = rest.substr(colon + 1);
      if (port.empty()) return refuse("the port is empty");
    }
  }
  if (address.host.empty()) return refuse("no host");
  if (address.host.find_first_of("@ \t") != std::string::npos) return refuse("not a host name");
  if (!port.empty()) {
    auto number = parse_number<uint16_t>(port);
    if (!number || *number == 0) return refuse("the port is not a number from 1 to 65535");
    address.port = *number;
  }
  return address;
}

SplitArguments split_at_dashes(int argc, const char* const* argv) {
  SplitArguments split;
  for (int i = 1; i < argc; ++i) {
    if (!split.theirs && std::string_view(argv[i]) == "--") {
      split.theirs.emplace();
    } else {
      (split.theirs ? *split.theirs : split.ours).emplace_back(argv[i]);
    }
  }
  return split;
}

}  // namespace osb::cli
