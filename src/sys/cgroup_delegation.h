#pragma once

// Groups that share out controllers to those below them: what has to hold before a sandbox can be limited.

#include <string>

#include "sys/cgroup_layout.h"

namespace osb::sys {

// Success when it is there already.
Result<void> make_group(const std::string& path);

// Children of `group` get the controllers that the layout has in version 2; those already on stay on.
Result<void> delegate(const std::string& group, const CgroupLayout& layout);
// Whether there are any.
bool shares_out(const CgroupLayout& layout);

// A group with processes cannot share out controllers (worse: it may take some of them, and then its children
// take no process), so this one goes to a group `leaf` below. Only the top of the whole hierarchy is exempt.
// Code::unsupported when others stay.
Result<void> make_room(const std::string& group, const std::string& leaf);

// What an ordinary user has of all this: the group of the calling process, when it was delegated to that user
// (cgroups(7), "Delegation"), as a layout of its own with the controllers that could be turned on there. The
// process moves into a group `leaf` below, because a group with processes cannot share out controllers.
// Code::unsupported, and why, when there is none.
Result<CgroupLayout> delegated_layout(const std::string& leaf);

// Moving a process into a v1 group waits for a grace period of the kernel, many milliseconds on an idle host,
// unless the kernel is told to favour such changes ("favordynmods" of cgroup2; forks get slightly dearer).
// Host-wide, until the next boot. Nothing happens where it is set already, unknown (before 6.0), or not
// needed because limits go through v2.
Result<void> favour_group_changes(const CgroupLayout& layout);

}  // namespace osb::sys
