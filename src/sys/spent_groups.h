#pragma once

// Groups of version 1 whose sandbox has ended.
//
// To take such a group apart costs the kernel more the more file systems there are on the host, under a lock
// that every new group needs. So it waits until nothing else is to be done, and a group in which nothing was
// limited, and nothing is left, becomes that of a later sandbox, by another name. (Version 2 knows no
// renaming; its groups are removed at once.)
//
// Nobody else knows of these groups: after a crash they are found by having no brother in version 2.

#include <deque>
#include <set>
#include <string>
#include <vector>

namespace osb::sys {

// The group below that of a sandbox in which its processes are when their cpu is limited; see CgroupHandles.
inline constexpr const char* kWork = "work";

class SpentGroups {
 public:
  // Directories that hold the groups of sandboxes. Every sandbox has one in each of `always`.
  SpentGroups(std::vector<std::string> always, std::vector<std::string> sometimes)
      : always_(std::move(always)), sometimes_(std::move(sometimes)) {}

  // Removes what is left of sandboxes not named in `alive`.
  void sweep(const std::set<std::string>& alive);

  // No process is in it any more. `usable`: it has no group in `sometimes` and none below it, and none of
  // the next sandbox's business is in it.
  void add(std::string id, bool usable);

  // Gives the groups of an earlier sandbox to this one. False when there are none; then there is nothing of
  // its name either.
  bool give_to(const std::string& id);

  // Removes them all; false when the kernel still held one, which is for another time.
  bool drop();

 private:
  struct Spent {
    std::string id;
    bool usable = false;
  };
  // False while the kernel still holds a part.
  bool remove(const std::string& id) const;

  std::vector<std::string> always_, sometimes_;
  std::deque<Spent> spent_;
};

}  // namespace osb::sys
