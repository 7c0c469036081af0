#include "launcher/id_ranges.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "base/strings.h"
#include "sys/file_lock.h"

namespace osb::launcher {
namespace {

constexpr char kOwnerAttribute[] = "trusted.opensandbox.owner";
constexpr size_t kFewLeft = 8;

std::string note_of(const Identity& owner) { return owner.id + " " + owner.group; }

std::string read_note(int group) {
  char value[128];
  ssize_t n = ::fgetxattr(group, kOwnerAttribute, value, sizeof value);
  return std::string(value, n > 0 ? static_cast<size_t>(n) : 0);
}

// Whether the path still leads to what was opened: it may have been removed, and made again, meanwhile.
bool is_at(const std::string& path, int opened) {
  struct stat one{}, other{};
  return ::stat(path.c_str(), &one) == 0 && ::fstat(opened, &other) == 0 && one.st_ino == other.st_ino &&
         one.st_dev == other.st_dev;
}

}  // namespace

Result<IdRanges> IdRanges::open(std::string top, Identity owner, const std::vector<uint32_t>& used) {
  IdRanges ranges(std::move(top), std::move(owner));
  for (uint32_t range : used) {
    uint32_t index = (range - kFirstId) / kIdsPerSandbox;
    if (range < kFirstId || index >= kRanges) continue;
    ranges.taken_[index] = true;
    if (!ranges.claim(index / kRangesPerBlock)) ++ranges.foreign_;
  }
  if (ranges.blocks_.empty() && !ranges.claim_any())
    return fail(
        Code::exhausted,
        "all blocks of user ids are claimed by other services of this host (groups opensandbox-ids-* in " +
            ranges.top_ + "); stop one of them");
  return ranges;
}

std::string IdRanges::block_path(uint32_t block) const {
  return top_ + "/opensandbox-ids-" + std::to_string(block);
}

// The owner's group is its service's: as long as a process is in it, sandboxes with ids of this block run.
bool IdRanges::is_abandoned(const std::string& note) const {
  size_t space = note.find(' ');
  if (space == note.npos) return true;  // its maker was killed before it could sign
  std::string group = note.substr(space + 1);
  if (group.empty() || group.find('/') != group.npos) return false;
  auto events = read_file(top_ + "/" + group + "/cgroup.events");
  if (!events) return events.error().code == Code::not_found;
  return events->find("populated 1") == events->npos;
}

bool IdRanges::claim(uint32_t block) {
  if (blocks_.contains(block)) return true;
  // Twice: the group that is there may go while we look at it.
  for (int attempt = 0; attempt < 2; ++attempt) {
    // Readable for nobody else, because whoever may open it may lock it.
    if (::mkdir(block_path(block).c_str(), 0700) < 0 && errno != EEXIST) return false;
    if (claim_existing(block)) return true;
  }
  return false;
}

bool IdRanges::claim_existing(uint32_t block) {
  auto group = open_at(AT_FDCWD, block_path(block), O_RDONLY | O_DIRECTORY);
  if (!group) return false;
  std::string own = note_of(owner_);
  // A copy of an earlier launcher may hold the lock for a moment longer.
  bool locked = read_note(group->get()) == own ? sys::lock_soon(group->get()) : sys::lock_now(group->get());
  if (!locked || !is_at(block_path(block), group->get())) return false;
  std::string note = read_note(group->get());
  if (note != own && !is_abandoned(note)) return false;
  if (::fsetxattr(group->get(), kOwnerAttribute, own.data(), own.size(), 0) < 0) return false;
  blocks_[block] = std::move(*group);
  return true;
}

// Starts somewhere else in each service: services that cannot see each other's groups (each in a cgroup
// namespace of its own) are then not likely to meet.
bool IdRanges::claim_any() {
  uint32_t start = 0;
  for (char digit : owner_.id) start = start * 31 + static_cast<unsigned char>(digit);
  for (uint32_t i = 0; i < kBlocks; ++i) {
    uint32_t block = (start + i) % kBlocks;
    if (!blocks_.contains(block) && claim(block)) return true;
  }
  return false;
}

Result<uint32_t> IdRanges::find_free() {
  if (top_.empty()) return 0;
  do {
    for (const auto& [block, group] : blocks_) {
      auto first = taken_.begin() + block * kRangesPerBlock, end = first + kRangesPerBlock;
      auto found = std::find(first, end, false);
      if (found != end) return kFirstId + static_cast<uint32_t>(found - taken_.begin()) * kIdsPerSandbox;
    }
  } while (claim_any());
  return fail(Code::exhausted, "all " + std::to_string(blocks_.size() * kRangesPerBlock) +
                                   " id ranges of this service are in use, and no more can be had; delete "
                                   "sandboxes, or stop other services of this host");
}

void IdRanges::mark(uint32_t range, bool taken) {
  uint32_t index = (range - kFirstId) / kIdsPerSandbox;
  if (range >= kFirstId && index < kRanges) taken_[index] = taken;
}

bool IdRanges::is_taken(uint32_t range) const {
  uint32_t index = (range - kFirstId) / kIdsPerSandbox;
  return range >= kFirstId && index < kRanges && taken_[index];
}

bool IdRanges::is_used(uint32_t block) const {
  auto first = taken_.begin() + block * kRangesPerBlock;
  return std::find(first, first + kRangesPerBlock, true) != first + kRangesPerBlock;
}

size_t IdRanges::free_count() const {
  size_t count = 0;
  for (const auto& [block, group] : blocks_) {
    auto first = taken_.begin() + block * kRangesPerBlock;
    count += static_cast<size_t>(std::count(first, first + kRangesPerBlock, false));
  }
  return count;
}

void IdRanges::prepare() {
  if (!top_.empty() && blocks_.size() < kBlocks && free_count() < kFewLeft) (void)claim_any();
}

void IdRanges::give_back(size_t keep) {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    bool kept = is_used(it->first) || (keep > 0 && keep--);
    if (!kept) ::rmdir(block_path(it->first).c_str());
    it = kept ? std::next(it) : blocks_.erase(it);
  }
}

}  // namespace osb::launcher
