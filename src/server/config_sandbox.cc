#include "server/config_sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/resource_limits.h"
#include "base/limit_bounds.h"
#include "base/strings.h"

namespace osb::server {
namespace {

constexpr int64_t kLeastLife = 60;             // as a request may ask for
constexpr int64_t kMostLife = 3650LL * 86400;  // far beyond any use
constexpr int64_t kMostPool = 10'000;
// As a request may ask for; percent of a core, and KiB.
constexpr int64_t kMostCpu = limit_bounds::kMostCpuMillis / 10;
constexpr int64_t kLeastSize = 16 << 10;
constexpr int64_t kMostSize = limit_bounds::kMostDiskBytes >> 10;
constexpr std::string_view kTooSmall = "must be at least 16384 (16 MiB), or 0 for no limit";

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

bool is_too_small(const std::optional<int64_t>& size) { return size && *size > 0 && *size < kLeastSize; }

void read_limits(Section& in, SandboxDefaults& out) {
  in.number("cpu_quota", 0, kMostCpu, [&](int64_t v) { out.cpu_quota = v; });
  for (auto [key, size] :
       {std::pair("memory_limit", &out.memory_limit_kb), std::pair("disk_limit", &out.disk_limit_kb)}) {
    in.number(key, 0, kMostSize, [size](int64_t v) { *size = v; });
    if (is_too_small(*size)) in.wrong(key, kTooSmall, fmt::format("write {} = 1048576 for 1 GiB", key));
  }
}

void read_pool(Section& in, SandboxDefaults& out) {
  in.number("pool_size", 0, kMostPool, [&](int64_t v) { out.pool_size = v; });
  in.text("pool_image", out.pool_image);
  if (trim(out.pool_image).empty())
    in.wrong("pool_image", "must name an image", "write pool_image = \"host\", or remove it");
  in.text_map("pool_limits", out.pool_limits);
  if (auto limits = api::parse_limits(out.pool_limits); !limits)
    in.wrong("pool_limits", limits.error().message, "write them as a request has them: memory = \"2Gi\"");
}

void read_shm(Section& in, SandboxDefaults& out) {
  using namespace limit_bounds;
  std::string size;
  in.text("shm_size", size);
  if (size.empty()) return;
  out.shm_bytes = api::parse_memory(size);
  if (!out.shm_bytes || *out.shm_bytes < kMinShmBytes || *out.shm_bytes > kMostShmBytes)
    in.wrong("shm_size", "must be a size from 64Ki to 1Ti", "write shm_size = \"1Gi\", or remove it");
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
  read_number(file, environment, "SANDBOX_MEMORY_LIMIT", 0, kMostSize, out.memory_limit_kb);
  if (is_too_small(out.memory_limit_kb))
    wrong_variable(file, "SANDBOX_MEMORY_LIMIT", kTooSmall, "correct it, or unset it to get the default");
  read_boolean(file, environment, "SANDBOX_ALLOW_NETWORK", out.allow_network);
  Section in(file, "sandbox");
  bool network = out.has_network();
  in.boolean("allow_network", network);
  if (in.has("allow_network")) out.allow_network = network;
  in.number("timeout_seconds", kLeastLife, kMostLife, [&](int64_t v) { out.timeout_seconds = v; });
  in.number("max_lifetime", kLeastLife, kMostLife, [&](int64_t v) { out.max_lifetime = v; });
  check_default_timeout(in, config);
  read_limits(in, out);
  read_shm(in, out);
  read_pool(in, out);
}

}  // namespace osb::server
