#pragma once

// Sandboxes as containers of a Docker engine on this host. execd is put into any image by a read-only
// directory of the host, gets its listeners through a socket in it (execd/container.h), and is reached and
// spoken to as in a native sandbox; so nothing is published, and no network is needed to reach it.
//
// A container's end is heard on execd's control connection, which ends with it; the engine is then asked how.
// Nothing is polled.

#include <map>
#include <memory>

#include "docker/container_config.h"
#include "docker/engine.h"
#include "docker/image_pulls.h"
#include "docker/sandbox_files.h"
#include "runtime/native/control.h"
#include "runtime/runtime.h"

namespace osb::docker {

using runtime::Adoption;
using runtime::Claim;
using runtime::End;
using runtime::Limits;
using runtime::PreparedPtr;

struct DockerSettings {
  EngineSettings engine;
  ContainerRules rules;
  ImageRequest::Pull pull_policy = ImageRequest::Pull::if_missing;
  std::string default_registry;
  Limits default_limits = {};  // for sandboxes that do not ask; pids, too
  std::optional<int64_t> shm_bytes = {};
  std::string_view execd;  // its bytes; they live as long as the process
};

class DockerRuntime : public runtime::Runtime {
 public:
  static Result<std::unique_ptr<DockerRuntime>> create(io::Executor executor, std::string owner,
                                                       const std::string& directory, DockerSettings settings);
  ~DockerRuntime() override;
  Task<> close() override;

  std::string_view name() const override { return "docker"; }
  const runtime::Capabilities& capabilities() const override { return capabilities_; }
  runtime::Isolation isolation() const override;
  Task<Result<void>> health() override;
  Task<Created<PreparedPtr>> prepare(runtime::SandboxSpec spec) override;
  std::string preparing(const std::string& handle) const override { return pulls_.progress(handle); }
  Task<Created<std::string>> start(PreparedPtr prepared, Claim claim) override;
  Task<Result<void>> destroy(std::string handle) override;
  Task<Result<std::vector<std::string>>> list() override;
  Task<Adoption> adopt(std::string handle, std::string identity) override;
  Task<Result<End>> wait(std::string handle) override;
  Task<Result<void>> settle(std::string handle) override;
  Task<Result<void>> pause(std::string handle) override;
  Task<Result<bool>> resume(std::string handle) override;
  Task<Result<runtime::Recalled>> recall(std::string handle) override;
  Task<Result<void>> keep_record(std::string handle, std::string record) override;
  Task<Result<io::Stream>> connect(std::string handle, uint16_t port) override;
  Task<Result<runtime::Output>> logs(std::string handle) override;

 private:
  struct Sandbox;
  using SandboxPtr = std::shared_ptr<Sandbox>;

  DockerRuntime(io::Executor executor, std::string owner, SandboxFiles files, DockerSettings settings);
  // The parts of start(); what they leave behind is for destroy().
  Task<Created<SandboxPtr>> start_container(const runtime::SandboxSpec& spec, const Image& image,
                                            std::string record);
  Task<Result<void>> hand_over(Listeners listeners);
  // The container of a handle; Code::not_found also for one that somebody else has made.
  Task<Result<Container>> find(std::string handle);
  void track(SandboxPtr sandbox);
  Task<Result<Fd>> take_socket(SandboxPtr sandbox);
  // See docker_ends.cc.
  Task<> watch(SandboxPtr sandbox);
  Task<> hear(SandboxPtr sandbox, Result<End>& end);
  Task<> ask_for_end(SandboxPtr sandbox, Result<End>& end);

  io::Executor executor_;
  std::string owner_;
  SandboxFiles files_;
  DockerSettings settings_;
  runtime::Capabilities capabilities_;
  Engine engine_;
  ImagePulls pulls_;
  io::TaskGroup tasks_;
  std::map<std::string, SandboxPtr> sandboxes_;
};

runtime::Capabilities docker_capabilities();

}  // namespace osb::docker
