#pragma once

// The native runtime as the unprivileged server sees it: plans go to the launcher, execd is reached through
// sockets that the launcher made. What is kept here per sandbox is only what a restarted server gets back by
// adopting it.

#include <map>
#include <memory>

#include "calls/launcher_client.h"
#include "launcher/plan.h"
#include "runtime/container_networks.h"
#include "runtime/native/control.h"
#include "runtime/native/image_pulls.h"
#include "runtime/native/images.h"
#include "runtime/runtime.h"
#include "sys/cgroup.h"

namespace osb::runtime {

struct NativeSettings {
  ImageSettings images;
  ImageRequest::Pull pull_policy = ImageRequest::Pull::if_missing;
  int64_t pids_limit = 4096;              // for sandboxes that do not ask
  Limits default_limits = {};             // likewise, of cpu, memory and disk
  sys::CgroupLayout cgroups;              // what this host can limit
  bool rootless = false;                  // see rootless.h: what is not limited is named, not refused
  std::string rootless_abilities = {};    // of its cgroups; see launcher/rootless.h
  bool egress = true;                     // there is an egress process
  bool network = true;                    // sandboxes without a policy reach the public internet
  std::optional<int64_t> shm_bytes = {};  // of /dev/shm; absent: by the sandbox's memory
};

// A volume that a creation has made: it goes when that fails.
struct MadeVolume {
  std::string owner, name;
};

struct Waiting;  // native_sandbox.h

class NativeRuntime : public Runtime {
 public:
  NativeRuntime(io::Executor executor, NativeSettings settings, Fd launcher_channel,
                std::function<void()> on_launcher_lost);
  ~NativeRuntime() override;
  Task<> close() override;

  std::string_view name() const override { return "native"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  Isolation isolation() const override;
  Task<Result<void>> health() override;
  // The image is looked up and the plan made; the launcher hears of it when it is started.
  Task<Created<PreparedPtr>> prepare(SandboxSpec spec) override;
  std::string preparing(const std::string& handle) const override;
  ImageLibrary* images() override { return &pulls_; }
  Task<Created<std::string>> start(PreparedPtr prepared, Claim claim) override;
  Task<Created<Warm>> warm(PreparedPtr prepared, std::string record) override;
  Task<Created<void>> claim(std::string handle, Claim claim, std::optional<NetworkPolicy> network) override;
  Task<Adoption> adopt_warm(std::string handle, Warm warm) override;
  Task<Result<void>> destroy(std::string handle) override;
  Task<Result<std::vector<std::string>>> list() override;
  Task<Adoption> adopt(std::string handle, std::string identity) override;
  Task<Result<End>> wait(std::string handle) override;
  Task<Result<void>> settle(std::string handle) override;
  Task<Result<void>> pause(std::string handle) override;
  Task<Result<bool>> resume(std::string handle) override;
  Task<Result<Recalled>> recall(std::string handle) override;
  Task<Result<void>> keep_record(std::string handle, std::string record) override;
  Task<Result<io::Stream>> connect(std::string handle, uint16_t port) override;
  Task<Result<Output>> logs(std::string handle) override;
  Task<Result<void>> capture(std::string handle, std::string snapshot) override;
  Task<Result<KeptSnapshot>> keep(std::string snapshot) override;
  Task<Result<KeptSnapshot>> keep_for_now(std::string snapshot) override;
  Task<Result<void>> drop(std::string snapshot) override;
  Task<Result<std::vector<std::string>>> list_snapshots() override;
  Task<Result<std::vector<sandbox::FileChange>>> changes(std::string handle) override;
  Task<Result<std::optional<NetworkPolicy>>> network_of(std::string handle) override;
  Task<Result<std::string>> metrics() override;
  Task<Result<std::vector<NamedVolume>>> list_volumes(std::string owner) override;
  Task<Result<void>> remove_volume(std::string owner, std::string name) override;
  // For containers of another runtime of this server. Borrows from this one.
  std::unique_ptr<ContainerNetworks> container_networks();
  // For such a runtime, where the server's user may not connect to its engine: the launcher does. The limit
  // is the caller's.
  Task<Result<io::Socket>> connect_engine();
  // For them, too: a directory below storage.allowed_host_paths, made as the owner of the place.
  Task<Result<void>> make_shared_path(std::string path);

 private:
  struct Sandbox;
  using SandboxPtr = std::shared_ptr<Sandbox>;

  std::string socket_path(const std::string& handle, const char* suffix) const;
  Result<std::string> boot_id();
  // The image of a request, from its registry when it is not here or has to be looked for.
  Task<Created<ImageRoot>> find_image(std::string handle, std::string owner, ImageRequest request);
  // The parts of start(): processes, then the entry process.
  Task<Result<std::pair<SandboxPtr, std::string>>> start_processes(const launcher::Plan& plan);
  Task<Created<void>> start_entry(SandboxPtr sandbox, EntryProcess entry);
  Task<Created<void>> hear_started(SandboxPtr sandbox);
  static Created<void> take_heard(Sandbox& sandbox, Created<std::optional<ControlState>> heard);
  // See native_volumes.cc.
  Task<Created<std::vector<MadeVolume>>> ensure_volumes(std::string owner, std::vector<Mount> mounts);
  Task<> drop_volumes(std::vector<MadeVolume> made);
  // What the launcher and the host say of one that an earlier server had; null unless it runs.
  Task<std::pair<Adoption, SandboxPtr>> find_running(std::string handle, std::string identity);
  // Its way out, while the entry process is started.
  struct Attaching;
  Task<> attach(std::shared_ptr<Attaching> attaching, std::string handle, std::string id);
  Created<void> judge(const Attaching& attaching);
  // Until the entry process has ended, and how; see native_ends.cc.
  Task<> watch(SandboxPtr sandbox);
  Task<Result<ControlState>> hear_end(SandboxPtr sandbox);
  Task<> until_gone(SandboxPtr sandbox);
  // Those that wait for a claim; see native_warm.cc.
  struct Recording;
  Task<> record(std::shared_ptr<Recording> recording, std::string handle, std::string record);
  Task<> record_in_the_end(SandboxPtr sandbox);
  Task<> watch_starting(SandboxPtr sandbox);
  Task<Result<void>> wait_for_execd(SandboxPtr sandbox);
  void hold(SandboxPtr sandbox, Waiting waiting);
  Task<> watch_waiting(SandboxPtr sandbox);
  Task<End> explain(SandboxPtr sandbox, Result<ControlState> last);
  Task<End> explain_death(std::string handle, int pidfd, int64_t ooms_before);
  Task<int64_t> count_ooms(std::string handle);
  Task<Result<Fd>> take_socket(SandboxPtr sandbox);

  io::Executor executor_;
  NativeSettings settings_;
  Capabilities capabilities_;
  Images images_;
  calls::LauncherClient launcher_;
  io::TaskGroup tasks_;
  ImagePulls pulls_;
  std::map<std::string, PullPtr> pulling_;  // what creates wait for, by handle
  std::map<std::string, SandboxPtr> sandboxes_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::string boot_id_;  // once it was read
};

}  // namespace osb::runtime
