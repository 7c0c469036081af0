#include "api/resource_limits.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "api/error_catalogue.h"
#include "base/limit_bounds.h"
#include "base/strings.h"

namespace osb::api {
namespace {

constexpr double kMaxCores = 9'223'372'036.0;  // 2^63 nanoseconds of processor per second

constexpr std::array<std::pair<std::string_view, int64_t>, 14> kUnits = {{
    {"", 1},
    {"b", 1},
    {"k", 1000},
    {"kb", 1000},
    {"ki", 1LL << 10},
    {"m", 1'000'000},
    {"mb", 1'000'000},
    {"mi", 1LL << 20},
    {"g", 1'000'000'000},
    {"gb", 1'000'000'000},
    {"gi", 1LL << 30},
    {"t", 1'000'000'000'000},
    {"tb", 1'000'000'000'000},
    {"ti", 1LL << 40},
}};

std::unexpected<ApiError> bad(std::string_view key, std::string why) {
  return refuse(invalid_parameter(fmt::format("resourceLimits.{}", key), std::move(why)));
}

// How many there are at most of something that is counted; the launcher refuses more, but not by name.
ApiResult<int64_t> parse_count(std::string_view key, std::string_view text, int64_t least, int64_t most) {
  auto count = parse_number<int64_t>(trim(text));
  if (!count || *count < least) return bad(key, fmt::format("must be a whole number of at least {}", least));
  if (*count > most) return bad(key, fmt::format("must be at most {}", most));
  return *count;
}

ApiResult<int64_t> parse_size(std::string_view key, std::string_view text, int64_t least,
                              const char* least_text) {
  auto bytes = parse_memory(text);
  if (!bytes) return bad(key, "must be a whole number with a unit, such as 512Mi, 2Gi or 500M");
  if (*bytes < least) return bad(key, fmt::format("must be at least {}", least_text));
  return *bytes;
}

}  // namespace

std::optional<int64_t> parse_cpu(std::string_view text) {
  text = trim(text);
  bool millis = text.ends_with('m') || text.ends_with('M');
  if (millis) text.remove_suffix(1);
  // from_chars would take "inf" and "nan"; a number starts with a digit or a dot.
  if (text.empty() || text.find_first_not_of("0123456789.eE+-") != text.npos) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  auto number = parse_number<double>(text);
  if (!number || !std::isfinite(*number) || *number <= 0) return std::nullopt;
  double cores = millis ? *number / 1000 : *number;
  if (cores > kMaxCores) return std::nullopt;
  return static_cast<int64_t>(std::floor(cores * 1000 + 1e-9));
}

std::optional<int64_t> parse_memory(std::string_view text) {
  text = trim(text);
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto number = parse_number<int64_t>(text.substr(0, digits));
  if (!number || *number <= 0) return std::nullopt;
  for (const auto& [unit, factor] : kUnits) {
    if (!iequals(unit, text.substr(digits))) continue;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(*number, factor, &bytes)) return std::nullopt;
    return bytes;
  }
  return std::nullopt;
}

ApiResult<sandbox::Limits> parse_limits(const std::map<std::string, std::string>& limits) {
  sandbox::Limits out;
  for (const auto& [key, text] : limits) {
    if (key == "cpu") {
      out.cpu_millis = parse_cpu(text);
      if (!out.cpu_millis) return bad(key, "must be a positive number of cores such as 0.5, 2 or 250m");
      if (*out.cpu_millis < kMinCpuMillis)
        return bad(key, fmt::format("must be at least {}m", kMinCpuMillis));
      if (*out.cpu_millis > limit_bounds::kMostCpuMillis)
        return bad(key, fmt::format("must be at most {} cores", limit_bounds::kMostCpuMillis / 1000));
    } else if (key == "memory") {
      out.memory_bytes = parse_memory(text);
      if (!out.memory_bytes)
        return bad(key, "must be a whole number with a unit, such as 512Mi, 2Gi or 500M");
      if (*out.memory_bytes < kMinMemoryBytes) return bad(key, "must be at least 16Mi");
    } else if (key == "pids") {
      out.pids = TRY(parse_count(key, text, kMinPids, limit_bounds::kMostPids));
    } else if (key == "nofile") {
      out.open_files = TRY(parse_count(key, text, kMinOpenFiles, limit_bounds::kMostOpenFiles));
    } else if (key == "disk" || key == "storage" || key == "ephemeral-storage") {
      if (out.disk_bytes) return bad(key, "the size of the disk is given twice");
      out.disk_bytes = TRY(parse_size(key, text, kMinDiskBytes, "16Mi"));
      if (*out.disk_bytes > limit_bounds::kMostDiskBytes) return bad(key, "must be at most 16Ti");
    } else if (key == "io-read") {
      out.io_read_bytes = TRY(parse_size(key, text, kMinIoBytes, "64Ki"));
    } else if (key == "io-write") {
      out.io_write_bytes = TRY(parse_size(key, text, kMinIoBytes, "64Ki"));
    } else if (key == "gpu") {
      out.gpus =
          trim(text) == "all" ? sandbox::kAllGpus : TRY(parse_count(key, text, 1, limit_bounds::kMostGpus));
    } else {
      return bad(key,
                 "this kind of limit cannot be enforced here; cpu, memory, pids, disk, nofile, io-read, "
                 "io-write and gpu can");
    }
  }
  return out;
}

}  // namespace osb::api
