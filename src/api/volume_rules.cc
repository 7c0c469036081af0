#include "api/volume_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/resource_limits.h"
#include "base/limit_bounds.h"
#include "base/strings.h"
#include "sandbox/volume_failures.h"

namespace osb::api {
namespace {

using sandbox::Failure;

constexpr size_t kMostPath = 1024;
// Together: a sandbox's record has them, beside everything else.
constexpr size_t kMostText = 16 * 1024;

std::unexpected<ApiError> refused(Failure failure) { return refuse(to_api_error(std::move(failure))); }

bool is_at_or_below(std::string_view path, std::string_view top) {
  return path == top || (path.starts_with(top) && (top == "/" || path[top.size()] == '/'));
}

// "/data/" is "/data".
std::string_view without_end(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// What is wrong with the parts between the slashes; "" when nothing is.
std::string_view flaw_of(std::string_view path) {
  if (path.size() > kMostPath) return "must have at most 1024 characters";
  if (path.find('\0') != path.npos) return "must not contain NUL";
  for (std::string_view part : split(path, '/')) {
    if (part == "." || part == "..") return "must not have '.' or '..' as a part";
    if (part.empty()) return "must have neither two slashes together nor one at its end";
    if (part.size() > 255) return "must not have a part of more than 255 characters";
  }
  return {};
}

ApiResult<> check_mount_path(const std::string& field, std::string_view path,
                             const std::vector<sandbox::Volume>& before) {
  if (path == "/") return refused(sandbox::invalid_mount_path(field, "must not be the root"));
  if (auto flaw = flaw_of(path.substr(1)); !flaw.empty())
    return refused(sandbox::invalid_mount_path(field, flaw));
  for (std::string_view tree : {"/proc", "/sys", "/dev"}) {
    if (is_at_or_below(path, tree))
      return refused(
          sandbox::invalid_mount_path(field, "must not lie in /proc, /sys or /dev; use another directory"));
  }
  for (const sandbox::Volume& other : before) {
    if (path == other.mount_path)
      return refused(sandbox::invalid_mount_path(field, "must not be the mount path of another volume"));
  }
  return {};
}

ApiResult<> check_sub_path(const std::string& field, std::string_view path) {
  if (path.empty()) return {};
  if (path.starts_with('/'))
    return refused(sandbox::invalid_sub_path(field, "must be relative to the volume"));
  if (auto flaw = flaw_of(path); !flaw.empty()) return refused(sandbox::invalid_sub_path(field, flaw));
  return {};
}

ApiResult<> check_host_path(const std::string& field, std::string_view path,
                            const std::vector<std::string>& allowed) {
  if (!path.starts_with('/'))
    return refused(sandbox::invalid_host_path(field, "must be a path of Linux: this server runs on it"));
  if (auto flaw = path == "/" ? std::string_view() : flaw_of(path.substr(1)); !flaw.empty())
    return refused(sandbox::invalid_host_path(field, flaw));
  for (const std::string& top : allowed) {
    if (is_at_or_below(path, top)) return {};
  }
  return refused(sandbox::host_path_not_allowed(
      field, allowed.empty()
                 ? "this server gives sandboxes no directories of its host; its operator lists some in "
                   "storage.allowed_host_paths, or use a named volume (pvc)"
                 : "must be one of storage.allowed_host_paths of the server, or lie below one"));
}

// "1.5Gi" as well; a part of a byte is a byte.
std::optional<int64_t> parse_storage(std::string_view text) {
  size_t number = std::min(text.find_first_not_of("0123456789."), text.size());
  auto amount = parse_number<double>(text.substr(0, number));
  std::string_view unit = text.substr(number);
  // Those of the contract, each 1024 times the one before.
  size_t power = unit.empty() ? 0 : std::string_view("KMGTPE").find(unit[0]) + 1;
  if (!amount || (!unit.empty() && (power == 0 || unit.substr(1) != "i"))) return std::nullopt;
  double bytes = std::ceil(std::ldexp(*amount, static_cast<int>(10 * power)));
  bool fits = bytes >= static_cast<double>(kMinDiskBytes) &&
              bytes <= static_cast<double>(limit_bounds::kMostDiskBytes);
  return fits ? std::optional(static_cast<int64_t>(bytes)) : std::nullopt;
}

ApiResult<sandbox::Volume> check_one(const std::string& field, const Volume& volume,
                                     const std::vector<std::string>& allowed,
                                     const std::vector<sandbox::Volume>& before) {
  using From = Volume::Backend;
  using To = sandbox::Volume::Backend;
  if (volume.backend == From::object_store)
    return refuse(
        unsupported(field + ".ossfs",
                    "this server mounts no object stores: it would need their keys and programs that "
                    "are not its own; use a host path or a named volume"));
  std::string_view mount_path = without_end(volume.mount_path), sub_path = without_end(volume.sub_path);
  TRY(check_mount_path(field + ".mountPath", mount_path, before));
  TRY(check_sub_path(field + ".subPath", sub_path));
  bool is_host = volume.backend == From::host;
  if (is_host) TRY(check_host_path(field + ".host.path", volume.source, allowed));
  std::optional<int64_t> size;
  if (!volume.storage.empty()) {
    size = parse_storage(volume.storage);
    if (!size)
      return refuse(
          invalid_parameter(field + ".pvc.storage", "must be a number with a unit, from 16Mi to 16Ti"));
  }
  return sandbox::Volume{.backend = is_host ? To::host : To::claim,
                         .source = volume.source,
                         .mount_path = std::string(mount_path),
                         .sub_path = std::string(sub_path),
                         .read_only = volume.read_only,
                         .create = volume.create,
                         .ephemeral = volume.ephemeral,
                         .size_bytes = size};
}

}  // namespace

ApiResult<std::vector<sandbox::Volume>> check_volumes(const std::vector<Volume>& volumes,
                                                      const std::vector<std::string>& allowed) {
  if (volumes.size() > kMostVolumes)
    return refuse(invalid_parameter("volumes", fmt::format("must have at most {} elements", kMostVolumes)));
  std::vector<sandbox::Volume> out;
  std::set<std::string_view> names;
  size_t text = 0;
  for (size_t i = 0; i < volumes.size(); ++i) {
    std::string field = fmt::format("volumes[{}]", i);
    const Volume& volume = volumes[i];
    if (!names.insert(volume.name).second) return refused(sandbox::duplicate_volume(field + ".name"));
    out.push_back(TRY(check_one(field, volume, allowed, out)));
    text += volume.source.size() + volume.mount_path.size() + volume.sub_path.size();
  }
  if (text > kMostText)
    return refuse(invalid_parameter("volumes", "must have paths of at most 16 KiB together"));
  return out;
}

}  // namespace osb::api
