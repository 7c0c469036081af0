#pragma once

// Files of a sidecar's operator: the policy, which is written after every change, and the lists that come
// before it.

#include <ctime>
#include <string>

#include "egress/policy.h"
#include "egress/verdict.h"

namespace osb::egress {

// The policy that counts at the start: the file's when there is a valid one, else the given one.
Result<Policy> initial_policy(const std::string& path, Policy given);
// Whole or not at all; on the disk when it returns.
Result<void> keep_policy(const std::string& path, const Policy& policy);

// Belongs to one loop.
class AlwaysFiles {
 public:
  explicit AlwaysFiles(std::string directory) : directory_(std::move(directory)) {}
  // Reads both into the overlay. Of a file that is missing there are no rules.
  Result<void> read(Overlay& overlay);
  // log_skip.always, whose names are not logged when they were looked up with success: nothing is that
  // succeeds, so it only has to be a list of names.
  Result<void> check_skipped() const;
  // Whether they are others than at the last read().
  bool changed() const;

 private:
  struct Version {
    timespec time{};
    off_t size = -1;
    ino_t inode = 0;
    bool operator==(const Version& other) const {
      return time.tv_sec == other.time.tv_sec && time.tv_nsec == other.time.tv_nsec && size == other.size &&
             inode == other.inode;
    }
  };
  struct File {
    const char* name;
    const char* action;
    Version version;
  };
  Version version_of(const File& file) const;

  std::string directory_;
  File deny_{"deny.always", "deny", {}}, allow_{"allow.always", "allow", {}};
};

}  // namespace osb::egress
