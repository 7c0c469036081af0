#pragma once

// The first process of each sandbox, by pidfd: found in its group or, without root, by the note in its
// directory. What is kept here is a bounded cache; the kernel knows.
//
// Belongs to the launcher's thread.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "base/fd.h"
#include "launcher/settings.h"
#include "launcher/started.h"
#include "sys/cgroup.h"

namespace osb::launcher {

class FirstProcesses {
 public:
  FirstProcesses(const Settings& settings, const sys::CgroupTree& cgroups)
      : settings_(&settings), cgroups_(&cgroups) {}

  void remember(const std::string& id, Fd pidfd);
  bool knows(const std::string& id) const { return pidfds_.contains(id); }
  // A pidfd, borrowed until the next call. Code::not_found: there is none; other errors tell nothing.
  Result<int> of(const std::string& id);
  // The same, owned from here on, and forgotten.
  Result<Fd> take(const std::string& id);

  // Its pidfd, when it is this process and lives. Code::not_found only when that process is gone;
  // Code::unavailable when it lives, but not where it should.
  Result<Fd> adopt(const std::string& id, const Started& recorded);

 private:
  Result<Fd> find(const std::string& id) const;

  const Settings* settings_;
  const sys::CgroupTree* cgroups_;
  std::map<std::string, Fd> pidfds_;
};

}  // namespace osb::launcher
