#include "launcher/volume_path.h"

#include <algorithm>

#include "base/strings.h"

namespace osb::launcher {
namespace {

constexpr size_t kMostName = 253;
constexpr size_t kMostPath = 4000;

bool is_part(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && part.size() <= 255 && part.find('\0') == part.npos;
}

}  // namespace

bool is_volume_name(std::string_view name) {
  if (name.empty() || name.size() > kMostName || name.front() == '-' || name.back() == '-') return false;
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::optional<VolumePath> parse_volume_path(std::string_view text) {
  if (text.size() > kMostPath) return std::nullopt;
  auto parts = split(text, '/');
  if (parts.size() < 2 || !is_volume_name(parts[0]) || !is_volume_name(parts[1])) return std::nullopt;
  VolumePath path{.owner = std::string(parts[0]), .name = std::string(parts[1])};
  for (size_t i = 2; i < parts.size(); ++i) {
    if (!is_part(parts[i])) return std::nullopt;
    path.below.append(i == 2 ? "" : "/").append(parts[i]);
  }
  return path;
}

}  // namespace osb::launcher
