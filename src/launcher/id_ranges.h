#pragma once

// Which ids of the host each sandbox gets: 65536 of them, a range.
//
// All services of a host draw from the same 4032 ranges, so each claims blocks of 64 that nobody else has. A
// block is claimed by making its group at the top of the hierarchy of control groups, which all who share the
// hierarchy can see and which ends with the boot, as the sandboxes do. The group bears a note of its owner,
// and the owner locks it as long as it lives. After that it stays while sandboxes of the owner run, and the
// owner takes it back when it comes again; else whoever needs a block may take it over.
//
// Belongs to the launcher's thread. Finding a free range costs no system call, unless all blocks are full.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "launcher/identity.h"
#include "launcher/settings.h"

namespace osb::launcher {

inline constexpr uint32_t kRangesPerBlock = 64;
inline constexpr uint32_t kBlocks = kRanges / kRangesPerBlock;

class IdRanges {
 public:
  // Without root there are no ranges: every sandbox has the ids of the service.
  static IdRanges none() { return IdRanges("", {}); }
  // `top` is the directory of the whole hierarchy, `used` the ranges of sandboxes that exist: their blocks
  // are claimed first. One that somebody else has stays his: those sandboxes live on, and no other comes to
  // it.
  static Result<IdRanges> open(std::string top, Identity owner, const std::vector<uint32_t>& used);

  // The lowest of a block: its user namespace is the one most likely to be there already.
  Result<uint32_t> find_free();
  void mark(uint32_t range, bool taken);
  bool is_taken(uint32_t range) const;

  // Claims a block in spare time when few ranges are left.
  void prepare();
  // Gives back blocks in which no sandbox is, down to `keep` of them. Others may want them.
  void give_back(size_t keep);

  // For warnings: how many of `used` are in blocks of others.
  size_t foreign() const { return foreign_; }

 private:
  IdRanges(std::string top, Identity owner) : top_(std::move(top)), owner_(std::move(owner)) {}
  std::string block_path(uint32_t block) const;
  bool claim(uint32_t block);
  bool claim_existing(uint32_t block);
  bool is_abandoned(const std::string& note) const;
  bool claim_any();
  bool is_used(uint32_t block) const;
  size_t free_count() const;

  std::string top_;
  Identity owner_;
  std::vector<bool> taken_ = std::vector<bool>(kRanges);
  std::map<uint32_t, Fd> blocks_;  // ours, with their locks
  size_t foreign_ = 0;
};

}  // namespace osb::launcher
