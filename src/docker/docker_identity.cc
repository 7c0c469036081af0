// The engine that has this service's sandboxes, by the id that it gives itself. One with another id counts as
// ours when it has our containers all the same, or when there is nothing that could be lost; otherwise every
// call fails as if the engine were away, and nothing is taken for an end.

#include <set>

#include "base/log.h"
#include "base/shown.h"
#include "docker/docker_sandbox.h"

namespace osb::docker {

EngineIdentity DockerRuntime::identity_of_engine() {
  return {.is_known = [this](const std::string& id) { return files_.read_engine().value_or("") == id; },
          .label = std::string(kOwnerLabel) + "=" + owner_,
          .judge = [this](const std::string& id,
                          const std::vector<Labels>& labels) { return judge_engine(id, labels); }};
}

Result<void> DockerRuntime::judge_engine(const std::string& id, const std::vector<Labels>& labels) {
  std::string before = files_.read_engine().value_or("");
  auto handles = TRY(files_.list());
  if (!before.empty() && (!handles.empty() || TRY(files_.has_snapshots()))) {
    std::set<std::string> ours(handles.begin(), handles.end()), there;
    for (const Labels& one : labels) {
      auto handle = one.find(kHandleLabel);
      if (handle != one.end() && ours.contains(handle->second)) there.insert(handle->second);
    }
    // An engine may have lost its id, and somebody a container. Most of them are not on two engines.
    if (there.empty() || there.size() * 2 < ours.size()) {
      return fail(Code::unavailable,
                  "another Docker engine answers (its ID is " + shown(id) +
                      ") than the one that has this service's sandboxes (" + shown(before) +
                      "), and nobody knows what they do; bring that one back, or, if they are to count as "
                      "lost, remove the file db/docker/engine from the service's state directory");
    }
    log::info("the Docker engine has our containers and another ID than before", {{"id", id}});
  }
  // Without it the next engine is believed, too, which is as before.
  if (auto kept = files_.write_engine(id); !kept)
    log::warn("the engine's ID is not remembered", {{"error", kept.error().message}});
  return {};
}

}  // namespace osb::docker
