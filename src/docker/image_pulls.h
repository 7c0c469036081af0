#pragma once

// Images as the engine has them, and bringing them to it. Creates that ask for the same image at the same
// time wait for one pull.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "docker/engine.h"
#include "runtime/runtime.h"

namespace osb::docker {

using runtime::Created;
using runtime::CreateFailure;
using runtime::ImageRequest;

class ImagePulls {
 public:
  ImagePulls(io::Executor executor, Engine& engine, ImageRequest::Pull policy, std::string default_registry);
  Task<> close() { co_await tasks_.close(); }

  // The image of a request, from its registry when it is not here or has to be looked for.
  Task<Created<Image>> find(std::string handle, ImageRequest request);
  // What find() for this handle waits for; "" when nothing.
  std::string progress(const std::string& handle) const;

 private:
  struct Pull;
  using PullPtr = std::shared_ptr<Pull>;
  Task<Created<Image>> look(ImageRequest request);
  Task<Created<void>> pull(std::string handle, ImageRequest request);
  Task<> run(PullPtr pull, std::string name, std::string tag, std::string platform,
             std::optional<RegistryLogin> login);

  io::Executor executor_;
  Engine& engine_;
  ImageRequest::Pull policy_;
  std::string default_registry_;
  std::map<std::string, PullPtr> running_;  // by what is pulled, and as whom
  std::map<std::string, PullPtr> waiting_;  // by handle
  io::TaskGroup tasks_;
};

// Whether a machine runs programs of an image for this platform ("linux/arm64") without emulation. What is
// not known is not refused.
bool runs_on(std::string_view machine, std::string_view platform);

// What a registry's refusal means, as far as an engine tells.
CreateFailure pull_failure(Error error);

}  // namespace osb::docker
