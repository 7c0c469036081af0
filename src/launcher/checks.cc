#include "launcher/checks.h"

#include <fcntl.h>

#include <algorithm>

#include "base/hex.h"
#include "base/ids.h"
#include "base/limit_bounds.h"
#include "base/strings.h"
#include "launcher/records.h"
#include "launcher/system_steps.h"
#include "launcher/volume_path.h"

namespace osb::launcher {

bool is_clean_path(std::string_view path) {
  if (path == "/") return true;
  if (path.empty() || path[0] != '/' || path.size() > 4000 || path.find('\0') != path.npos) return false;
  for (std::string_view part : split(path.substr(1), '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
  }
  return true;
}

bool is_at_or_below(std::string_view path, std::string_view top) {
  return path == top || (path.starts_with(top) && path.size() > top.size() && path[top.size()] == '/');
}

namespace {

constexpr int64_t kMinMemoryBytes = 4 << 20;
constexpr int64_t kMinDiskBytes = 4 << 20;
constexpr int64_t kMinOpenFiles = 16;
constexpr size_t kMaxName = 64;
constexpr size_t kMaxLayers = 256;  // of all overlays; each is a descriptor and a mount

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Result<void> refuse(const Step& step, const char* why) {
  // The server chose every byte of it, and how many there are.
  return fail(Code::permission_denied, "refused: " + to_text(step).substr(0, 200) + ": " + why);
}

// Neither over, in nor around the kernel's trees: the system steps put them there, and nothing of a plan
// comes to lie between them and their masks.
bool is_apart_from_system(std::string_view target) {
  for (std::string_view tree : {"/proc", "/sys", "/dev"}) {
    if (is_at_or_below(target, tree)) return false;
  }
  return target != "/";
}

Result<void> check_overlay(const Step& step) {
  if (!is_name(step.name)) return refuse(step, "not a layer name");
  if (step.lowers.empty()) return refuse(step, "no layers");
  for (const std::string& lower : step.lowers) {
    if (!is_clean_path(lower)) return refuse(step, "a layer is not a clean absolute path");
  }
  return {};
}

// What can be written is a volume; everything else of the host is shown as it is.
Result<void> check_bind(const Step& step) {
  bool is_shared = step.ids == Step::Ids::owner;
  if (!is_shared && step.access != Step::Access::read_only)
    return refuse(step, "only what has the ids of its owner can be written");
  return {};
}

Result<void> check_network(const PlanNetwork& network) {
  if (network.policy.empty()) return {};
  return fail(Code::permission_denied,
              "refused: network policy \"" + network.policy.substr(0, kMaxName) +
                  "\": this launcher knows none; the egress process keeps the policies of sandboxes");
}

// Values that a kind of step does not use are empty: what nobody looks at is nothing that could be meant.
Result<void> check_fields(const Step& step) {
  using Kind = Step::Kind;
  bool placed = step.kind != Kind::hostname && step.kind != Kind::show_limits;
  if (placed ? !is_clean_path(step.target) : !step.target.empty())
    return refuse(step, "the target is not a clean absolute path");
  if (step.kind == Kind::volume) {
    if (!parse_volume_path(step.source)) return refuse(step, "the source is not the name of a volume");
  } else if (step.kind == Kind::bind ? !is_clean_path(step.source) : !step.source.empty()) {
    return refuse(step, "the source is not a clean absolute path");
  }
  if (step.kind == Kind::bind) TRY(check_bind(step));
  if (step.kind != Kind::bind && step.ids != Step::Ids::sandbox) return refuse(step, "ids where none belong");
  if (!is_volume(step) && step.access != Step::Access::read_only)
    return refuse(step, "access where none belongs");
  if (step.kind == Kind::overlay) return check_overlay(step);
  if (!step.lowers.empty()) return refuse(step, "layers where none belong");
  if (step.kind == Kind::hostname ? !is_name(step.name) : !step.name.empty())
    return refuse(step, "not a host name");
  return {};
}

// Walks through the steps in the only order there is; see plan.h.
class Order {
 public:
  explicit Order(const std::vector<Step>& steps) : steps_(steps) {}

  Result<void> check() {
    if (steps_.empty()) return fail(Code::permission_denied, "refused: an empty plan");
    for (const Step& step : steps_) TRY(check_fields(step));
    TRY(check_files());
    TRY(check_system());
    return check_rest();
  }

 private:
  bool more() const { return at_ < steps_.size(); }

  Result<void> check_files() {
    using Kind = Step::Kind;
    const Step& root = steps_[0];
    if (root.kind != Kind::overlay || root.target != "/")
      return refuse(root, "a plan starts with the overlay of /");
    std::vector<std::string_view> names;
    size_t layers = 0;
    for (; more(); ++at_) {
      const Step& step = steps_[at_];
      if (step.kind != Kind::overlay && step.kind != Kind::bind && step.kind != Kind::scratch &&
          step.kind != Kind::volume)
        break;
      if (at_ > 0 && !is_apart_from_system(step.target))
        return refuse(step, "/, /proc, /sys, /dev and what is in them are not for files");
      if (!add(targets_, step.target)) return refuse(step, "the same target again");
      if (step.kind != Kind::overlay) continue;
      if (!add(names, step.name)) return refuse(step, "the same layer name again");
      overlays_.push_back(step.target);
      layers += step.lowers.size();
      if (layers > kMaxLayers) return refuse(step, "too many layers");
    }
    return {};
  }

  Result<void> check_system() {
    for (const Step& wanted : system_steps()) {
      if (!more() || steps_[at_] != wanted) {
        std::string found = more() ? to_text(steps_[at_]).substr(0, 200) : "the end";
        return fail(Code::permission_denied, "refused: " + found + " where \"" + to_text(wanted) +
                                                 "\" has to be: no sandbox is without it");
      }
      ++at_;
    }
    return {};
  }

  Result<void> check_rest() {
    using Kind = Step::Kind;
    if (more() && steps_[at_].kind == Kind::show_limits) ++at_;
    if (more() && steps_[at_].kind == Kind::hostname) ++at_;
    std::vector<std::string_view> sealed;
    for (; more(); ++at_) {
      const Step& step = steps_[at_];
      if (step.kind != Kind::seal) return refuse(step, "it has no place behind the system's steps");
      if (std::find(overlays_.begin(), overlays_.end(), step.target) == overlays_.end())
        return refuse(step, "not an overlay of this plan");
      if (!add(sealed, step.target)) return refuse(step, "sealed already");
    }
    return {};
  }

  // False when it is there already.
  static bool add(std::vector<std::string_view>& all, std::string_view one) {
    if (std::find(all.begin(), all.end(), one) != all.end()) return false;
    all.push_back(one);
    return true;
  }

  const std::vector<Step>& steps_;
  size_t at_ = 0;
  std::vector<std::string_view> targets_, overlays_;
};

}  // namespace

Result<void> check_id(std::string_view id) {
  if (!is_uuid(id)) return fail(Code::permission_denied, "refused: the id is not a UUID");
  return {};
}

Result<void> check(const Plan& plan) {
  using namespace limit_bounds;
  TRY(check_id(plan.id));
  if (!plan.image.empty() && !is_hex_digest(plan.image)) {
    return fail(Code::permission_denied, "refused: the image is not a digest");
  }
  auto in_range = [](const std::optional<int64_t>& value, int64_t low, int64_t high) {
    return !value || (*value >= low && *value <= high);
  };
  if (!in_range(plan.limits.cpu_millis, 1, kMostCpuMillis) || !in_range(plan.limits.pids, 1, kMostPids) ||
      !in_range(plan.limits.memory_bytes, kMinMemoryBytes, INT64_MAX) ||
      !in_range(plan.limits.io_read_bytes, 1, INT64_MAX) ||
      !in_range(plan.limits.io_write_bytes, 1, INT64_MAX) ||
      !in_range(plan.disk_bytes, kMinDiskBytes, kMostDiskBytes) ||
      !in_range(plan.open_files, kMinOpenFiles, kMostOpenFiles) ||
      !in_range(plan.shm_bytes, kMinShmBytes, kMostShmBytes)) {
    return fail(Code::permission_denied, "refused: a limit is out of range");
  }
  if (plan.record.size() > kMaxRecord)
    return fail(Code::permission_denied, "refused: the record is too long");
  TRY(check_network(plan.network));
  return Order(plan.steps).check();
}

bool is_volume(const Step& step) {
  return step.kind == Step::Kind::volume || (step.kind == Step::Kind::bind && step.ids == Step::Ids::owner);
}

Result<void> check_volume(const Step& step) {
  if (!is_volume(step)) return refuse(step, "no volume");
  TRY(check_fields(step));
  if (!is_apart_from_system(step.target)) return refuse(step, "the target is not for files");
  return {};
}

Result<Fd> open_source(const Settings& settings, const std::string& path) {
  std::string images = settings.state_dir + "/" + state::kImages;
  std::vector<std::string> roots = settings.sources;
  if (path != images) roots.push_back(images);
  for (const std::string& root : roots) {
    if (!is_at_or_below(path, root)) continue;
    // The root itself is the operator's word and may be a symlink; what lies below may be somebody else's.
    Fd top = TRY(open_at(AT_FDCWD, root, O_PATH));
    if (path == root) return top;
    return open_beneath(top.get(), path.substr(root.size() + 1), O_PATH);
  }
  return fail(Code::permission_denied,
              "refused: " + path + " is not among the directories this launcher may show");
}

}  // namespace osb::launcher
