#pragma once

// The policies of sandboxes on disk, one file each, so that a killed process finds them again. What cannot be
// read is a sandbox without a way out, never one without a policy.

#include <string>
#include <vector>

#include "base/fd.h"
#include "egress/policy.h"

namespace osb::egress {

struct KeptPolicy {
  std::string id;  // what the sandbox's owner calls it
  Policy policy;
};

std::string to_text(const KeptPolicy& kept);
Result<KeptPolicy> parse_kept(std::string_view text);

// Belongs to one process.
class PolicyFiles {
 public:
  explicit PolicyFiles(Fd directory) : directory_(std::move(directory)) {}

  // Handles of all that are there.
  Result<std::vector<std::string>> list() const;
  Result<KeptPolicy> read(const std::string& handle) const;
  // In place of what is there, whole or not at all.
  Result<void> write(const std::string& handle, const KeptPolicy& kept) const;
  void remove(const std::string& handle) const;

 private:
  Fd directory_;
};

}  // namespace osb::egress
