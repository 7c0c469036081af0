#include "server/config_sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace osb::server {
namespace {

constexpr int64_t kLeastLife = 60;             // as a request may ask for
constexpr int64_t kMostLife = 3650LL * 86400;  // far beyond any use
constexpr int64_t kMostPool = 10'000;
constexpr int64_t kMostCpu = 100 * 1024;            // 1024 cores
constexpr int64_t kLeastMemory = 16 << 10;          // KiB; as a request may ask for
constexpr int64_t kMostMemory = int64_t{16} << 30;  // 16 TiB in KiB

std::optional<std::string> variable(const Environment& environment, const char* name) {
  const char* value = environment(name);
  if (value == nullptr) return std::nullopt;
  return std::string(trim(value));
}

void read_number(ConfigFile& file, const Environment& environment, const char* name, int64_t low,
                 int64_t high, std::optional<int64_t>& out) {
  auto text = variable(environment, name);
  if (!text) return;
  auto value = parse_number<int64_t>(*text);
  if (value && *value >= low && *value <= high) {
    out = *value;
    return;
  }
  wrong_variable(file, name, fmt::format("must be a whole number from {} to {}", low, high),
                 "correct it, or unset it to get the default");
}

void read_boolean(ConfigFile& file, const Environment& environment, const char* name,
                  std::optional<bool>& out) {
  constexpr std::array<std::string_view, 4> kYes = {"true", "1", "yes", "on"};
  constexpr std::array<std::string_view, 4> kNo = {"false", "0", "no", "off"};
  auto text = variable(environment, name);
  if (!text) return;
  std::string word = to_lower(*text);
  bool yes = std::ranges::find(kYes, word) != kYes.end();
  if (!yes && std::ranges::find(kNo, word) == kNo.end())
    return wrong_variable(file, name, "must be true or false", "correct it, or unset it to get the default");
  out = yes;
}

// Two values of one file that contradict each other: a create without a timeout would be refused for ever.
void check_default_timeout(Section& in, const Config& config) {
  const SandboxDefaults& sandbox = config.sandbox;
  if (!sandbox.timeout_seconds) return;
  for (const auto& [most, name] :
       {std::pair(sandbox.max_lifetime, "sandbox.max_lifetime"),
        std::pair(config.server.max_sandbox_timeout_seconds, "server.max_sandbox_timeout_seconds")}) {
    if (most && *sandbox.timeout_seconds > *most)
      in.wrong("timeout_seconds", fmt::format("must be at most {}", name), "make one of them fit the other");
  }
}

}  // namespace

void wrong_variable(ConfigFile& file, std::string_view name, std::string_view cause,
                    std::string_view remedy) {
  if (file.error) return;
  file.error = Error{Code::invalid_argument, 0, fmt::format("environment: {}: {}; {}", name, cause, remedy)};
}

void read_sandbox(ConfigFile& file, const Environment& environment, Config& config) {
  SandboxDefaults& out = config.sandbox;
  read_number(file, environment, "SANDBOX_POOL_SIZE", 0, kMostPool, out.pool_size);
  read_number(file, environment, "SANDBOX_CPU_QUOTA", 0, kMostCpu, out.cpu_quota);
  read_number(file, environment, "SANDBOX_MEMORY_LIMIT", 0, kMostMemory, out.memory_limit_kb);
  if (out.memory_limit_kb && *out.memory_limit_kb > 0 && *out.memory_limit_kb < kLeastMemory) {
    wrong_variable(file, "SANDBOX_MEMORY_LIMIT", "must be at least 16384 KiB, or 0 for no limit",
                   "correct it, or unset it to get the default");
  }
  read_boolean(file, environment, "SANDBOX_ALLOW_NETWORK", out.allow_network);
  Section in(file, "sandbox");
  bool network = out.has_network();
  in.boolean("allow_network", network);
  if (in.has("allow_network")) out.allow_network = network;
  in.number("timeout_seconds", kLeastLife, kMostLife, [&](int64_t v) { out.timeout_seconds = v; });
  in.number("max_lifetime", kLeastLife, kMostLife, [&](int64_t v) { out.max_lifetime = v; });
  check_default_timeout(in, config);
  // Named, because who sets them relies on them.
  for (const auto& [name, value] :
       {std::pair("SANDBOX_POOL_SIZE", out.pool_size), std::pair("SANDBOX_CPU_QUOTA", out.cpu_quota),
        std::pair("SANDBOX_MEMORY_LIMIT", out.memory_limit_kb)}) {
    if (value) config.warnings.push_back(fmt::format("environment: {}: it has no effect here", name));
  }
}

}  // namespace osb::server
