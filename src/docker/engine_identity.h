#pragma once

// Which engine it is that answers. An address says nothing of that: somebody may have started another engine
// at the same socket, or led a tunnel elsewhere. What such a one does not have is no word about the
// containers of the first.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace osb::docker {

struct EngineIdentity {
  std::function<bool(const std::string& id)> is_known;
  // Containers with this label speak for an engine whose id is not known. `labels`: of each that it has.
  std::string label;
  // Code::unavailable, with what to do about it: it is another one.
  std::function<Result<void>(const std::string& id,
                             const std::vector<std::map<std::string, std::string>>& labels)>
      judge;
};

}  // namespace osb::docker
