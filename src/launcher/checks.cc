#include "launcher/checks.h"

#include <fcntl.h>

#include <algorithm>

#include "base/ids.h"
#include "base/strings.h"
#include "launcher/records.h"

namespace osb::launcher {
namespace {

constexpr int64_t kMaxCpuMillis = 1'024'000;
constexpr int64_t kMaxPids = 4'000'000;
constexpr int64_t kMinMemoryBytes = 4 << 20;
constexpr int64_t kMinDiskBytes = 4 << 20;
constexpr int64_t kMaxDiskBytes = int64_t{1} << 44;  // of ext4 with blocks of 4 KiB
constexpr int64_t kMinOpenFiles = 16;
constexpr int64_t kMaxOpenFiles = 1 << 30;
constexpr size_t kMaxName = 64;

// Absolute, no empty, "." or ".." component, no trailing slash ("/" itself is fine).
bool is_clean_path(std::string_view path) {
  if (path == "/") return true;
  if (path.empty() || path[0] != '/' || path.size() > 4000 || path.find('\0') != path.npos) return false;
  for (std::string_view part : split(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
  }
  return true;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool is_digest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9');
         });
}

Result<void> refuse(const Step& step, const char* why) {
  return fail(Code::permission_denied, "refused: " + to_text(step) + ": " + why);
}

Result<void> check_step(const Step& step, bool first) {
  bool root = step.target == "/";
  if (step.kind == Step::Kind::hostname) {
    return is_name(step.name) ? Result<void>{} : refuse(step, "not a host name");
  }
  if (step.kind == Step::Kind::show_limits) {
    return first ? refuse(step, "a plan starts with the overlay of /") : Result<void>{};
  }
  if (!is_clean_path(step.target)) return refuse(step, "the target is not a clean absolute path");
  if (first != (step.kind == Step::Kind::overlay && root)) {
    return refuse(step, "a plan starts with the overlay of /, and has only one");
  }
  if (step.kind == Step::Kind::overlay) {
    if (!is_name(step.name)) return refuse(step, "not a layer name");
    if (step.lowers.empty()) return refuse(step, "no layers");
    for (const std::string& lower : step.lowers) {
      if (!is_clean_path(lower)) return refuse(step, "a layer is not a clean absolute path");
    }
  } else if (!step.lowers.empty()) {
    return refuse(step, "layers where none belong");
  }
  if (step.kind == Step::Kind::bind ? !is_clean_path(step.source) : !step.source.empty()) {
    return refuse(step, "the source is not a clean absolute path");
  }
  return {};
}

}  // namespace

Result<void> check_id(std::string_view id) {
  if (!is_uuid(id)) return fail(Code::permission_denied, "refused: the id is not a UUID");
  return {};
}

Result<void> check(const Plan& plan) {
  TRY(check_id(plan.id));
  if (!plan.image.empty() && !is_digest(plan.image)) {
    return fail(Code::permission_denied, "refused: the image is not a digest");
  }
  auto in_range = [](const std::optional<int64_t>& value, int64_t low, int64_t high) {
    return !value || (*value >= low && *value <= high);
  };
  if (!in_range(plan.limits.cpu_millis, 1, kMaxCpuMillis) || !in_range(plan.limits.pids, 1, kMaxPids) ||
      !in_range(plan.limits.memory_bytes, kMinMemoryBytes, INT64_MAX) ||
      !in_range(plan.limits.io_read_bytes, 1, INT64_MAX) ||
      !in_range(plan.limits.io_write_bytes, 1, INT64_MAX) ||
      !in_range(plan.disk_bytes, kMinDiskBytes, kMaxDiskBytes) ||
      !in_range(plan.open_files, kMinOpenFiles, kMaxOpenFiles)) {
    return fail(Code::permission_denied, "refused: a limit is out of range");
  }
  if (plan.record.size() > kMaxRecord)
    return fail(Code::permission_denied, "refused: the record is too long");
  if (plan.steps.empty()) return fail(Code::permission_denied, "refused: an empty plan");
  for (size_t i = 0; i < plan.steps.size(); ++i) TRY(check_step(plan.steps[i], i == 0));
  return {};
}

Result<Fd> open_source(const Settings& settings, const std::string& path) {
  auto below = [&](const std::string& root) {
    return path == root || (path.starts_with(root) && path.size() > root.size() && path[root.size()] == '/');
  };
  std::string images = settings.state_dir + "/" + state::kImages;
  std::vector<std::string> roots = settings.sources;
  if (path != images) roots.push_back(images);
  for (const std::string& root : roots) {
    if (!below(root)) continue;
    // The root itself is the operator's word and may be a symlink; what lies below may be somebody else's.
    Fd top = TRY(open_at(AT_FDCWD, root, O_PATH));
    if (path == root) return top;
    return open_beneath(top.get(), path.substr(root.size() + 1), O_PATH);
  }
  return fail(Code::permission_denied,
              "refused: " + path + " is not among the directories this launcher may show");
}

}  // namespace osb::launcher
