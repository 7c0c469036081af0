#include "registry/room.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include "image/budget.h"

namespace osb::registry {
namespace {

std::string megabytes(uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

// Adds to at most what a number can be: sizes come from a manifest.
uint64_t sum(uint64_t one, uint64_t other) { return one > UINT64_MAX - other ? UINT64_MAX : one + other; }

// Whether the budget holds without a look at who uses what. Layers that images share count more than once
// here.
bool is_far_from(uint64_t budget, const std::string& state_dir, uint64_t bytes) {
  auto index = image::load_index(state_dir);
  if (!index) return false;
  for (const auto& [id, image] : index->images) bytes = sum(bytes, image.bytes);
  return bytes <= budget;
}

Result<void> check_budget(const KeeperSettings& settings, uint64_t bytes) {
  if (settings.disk_budget == 0 || is_far_from(settings.disk_budget, settings.state_dir, bytes)) return {};
  image::Store::Options options;
  options.state_dir = settings.state_dir;
  options.service_gid = settings.service_gid;
  auto store = TRY(image::Store::open(std::move(options)));
  uint64_t stays = TRY(image::bytes_that_stay(store));
  if (sum(bytes, stays) <= settings.disk_budget) return {};
  return fail(Code::exhausted, "its layers take " + megabytes(bytes) + ", and of the " +
                                   megabytes(settings.disk_budget) + " of registry.disk_budget_gb " +
                                   megabytes(stays) + " are in use");
}

}  // namespace

Result<void> check_room(const KeeperSettings& settings, uint64_t bytes) {
  if (bytes == 0) return {};
  TRY(check_budget(settings, bytes));
  struct statvfs disk{};
  if (::statvfs((settings.state_dir + "/images/store").c_str(), &disk) < 0)
    return fail_errno("look at the disk of the images");
  uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  // Some file systems say nothing of their size.
  if (disk.f_blocks == 0 || bytes <= free) return {};
  return fail(Code::exhausted, "its layers take " + megabytes(bytes) +
                                   ", and the disk of the service's state directory has " + megabytes(free) +
                                   " left");
}

}  // namespace osb::registry
