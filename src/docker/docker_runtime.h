#pragma once

// Sandboxes as containers of a Docker engine. execd is put into any image by a read-only directory of the
// host, gets its listeners through a socket in it (execd/container.h), and is reached and spoken to as in a
// native sandbox; so nothing is published, and no network is needed to reach it. Under a kernel of its own it
// is reached by the container's network instead (execd/knocks.h), and on another host by the engine's API
// (docker_remote.cc).
//
// A container's end is heard on execd's control connection, which ends with it; the engine is then asked how.
// What others do to containers is heard by the engine's events (docker_events.cc). Nothing is polled.

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/knock.h"
#include "docker/container_config.h"
#include "docker/engine.h"
#include "docker/host_path.h"
#include "docker/image_pulls.h"
#include "docker/original_notes.h"
#include "docker/sandbox_files.h"
#include "runtime/container_networks.h"
#include "runtime/native/control.h"
#include "runtime/runtime.h"

namespace osb::docker {

using runtime::Adoption;
using runtime::Claim;
using runtime::End;
using runtime::Limits;
using runtime::PreparedPtr;

// Of containers that police others, on another host.
struct EgressSettings {
  std::string image;
  std::vector<std::string> name_servers = {}, deny_always = {}, allow_always = {};
  std::string deny_webhook = {};
};

struct DockerSettings {
  EngineSettings engine;
  ContainerRules rules;
  ImageRequest::Pull pull_policy = ImageRequest::Pull::if_missing;
  std::string default_registry;
  Limits default_limits = {};  // for sandboxes that do not ask; pids, too
  std::optional<int64_t> shm_bytes = {};
  std::map<std::string, std::string> env = {};  // of sandboxes that say nothing else
  std::vector<std::string> shared_paths = {};   // of the host, which sandboxes may have
  std::string state_dir = {};                   // of the service, which they may not
  // Makes a missing one as the owner of the place; none: this server's user does, where he may.
  std::function<Task<Result<void>>(std::string)> make_shared_path = {};
  bool may_be_remote = false;    // when it turns out that the engine has other files
  bool foreign_volumes = true;   // of the engine that others have made, which they may have
  std::string public_host = {};  // in endpoints of ports that are published on all addresses
  bool adopt = false;            // take containers of the original server over
  OriginalNotes original = {};   // and what it has changed of them
  // Of this service; none: there are none, and policies are refused.
  std::shared_ptr<runtime::ContainerNetworks> networks = {};
  std::optional<EgressSettings> sidecars = {};  // instead of these, on another host
  std::string_view execd;                       // its bytes; they live as long as the process
};

struct DockerPrepared;

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
  // Whether the engine has what containers are to be started with. Code::invalid_argument: it has not, and
  // says so; nobody knows while it is away.
  Task<Result<void>> check_oci_runtime();
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
  void on_news(std::function<void(runtime::News)> heard) override;
  Task<Result<bool>> is_paused(std::string handle) override;
  Task<Result<runtime::Recalled>> recall(std::string handle) override;
  Task<Result<void>> keep_record(std::string handle, std::string record) override;
  Task<Result<io::Stream>> connect(std::string handle, uint16_t port) override;
  Task<Result<runtime::Output>> logs(std::string handle) override;
  std::string detour(const std::string& handle, uint16_t port) const override;
  std::optional<std::string> endpoint(const std::string& handle, uint16_t port) const override;
  // See docker_warm.cc.
  Task<Created<runtime::Warm>> warm(PreparedPtr prepared, std::string record) override;
  Task<Created<void>> claim(std::string handle, Claim claim,
                            std::optional<runtime::NetworkPolicy> network) override;
  Task<Adoption> adopt_warm(std::string handle, runtime::Warm warm) override;
  // See docker_snapshots.cc.
  Task<Result<void>> capture(std::string handle, std::string snapshot) override;
  Task<Result<runtime::KeptSnapshot>> keep(std::string snapshot) override;
  Task<Result<void>> drop(std::string snapshot) override;
  Task<Result<std::vector<std::string>>> list_snapshots() override;
  Task<Result<std::vector<sandbox::FileChange>>> changes(std::string handle) override;
  // See docker_volumes.cc.
  Task<Result<std::vector<runtime::NamedVolume>>> list_volumes(std::string owner) override;
  Task<Result<void>> remove_volume(std::string owner, std::string name) override;
  Task<Result<std::optional<runtime::NetworkPolicy>>> network_of(std::string handle) override;
  std::string egress_token(const std::string& handle) const override;

 private:
  struct Sandbox;
  using SandboxPtr = std::shared_ptr<Sandbox>;
  // A volume that a create makes, as long as that create may fail.
  struct MadeVolume {
    std::string name;
    std::shared_ptr<bool> is_shared;  // another create of this server came to it
  };
  // What a container is to see, and what of it was not there before.
  struct Mounts {
    std::vector<ContainerMount> mounts;
    std::vector<FileId> shown;  // what the directories of the host are, in their order
    std::vector<MadeVolume> made;
    // Directories of volumes that this engine cannot show by itself: which of `mounts`, and which of `shown`.
    struct Part {
      size_t mount, shown;
    };
    std::vector<Part> parts = {};
  };

  DockerRuntime(io::Executor executor, std::string owner, SandboxFiles files, DockerSettings settings);
  // A container with an execd that answers. On failure nothing is left behind, see start().
  Task<Created<SandboxPtr>> begin_once(const DockerPrepared& prepared, std::string record);
  // The same, and once more when the first try has shown that the engine has other files.
  Task<Created<SandboxPtr>> begin(const DockerPrepared& prepared, std::string record);
  // What there is of one that failed goes, also volumes that were made for it.
  Task<> undo(std::string handle, std::vector<MadeVolume> made);
  Task<> forget_made(std::vector<MadeVolume> made);
  // Its parts; what they leave behind is for destroy().
  // Where execd comes from, and how it is reached: by the one or the other.
  struct Boot {
    std::string source;  // a directory of the host, or a volume
    std::string secret = {};
    std::string token = {};    // of the egress of one on another host,
    std::string sidecar = {};  // and the engine's id of that
    std::optional<Listeners> listeners = {};
  };
  Task<Created<Boot>> prepare_boot(std::string handle, std::string image, std::string record);
  // See docker_create.cc.
  // Before anything is pulled or made for a container that would get no network.
  Task<Created<void>> check_network(const runtime::SandboxSpec& spec);
  // `misnamed`: another container of the same sandbox has its name.
  Task<Result<std::string>> create_under_name(std::string name, const std::string& handle,
                                              std::string platform, std::string body, bool& misnamed);
  Task<Result<std::string>> create_as_called(const runtime::SandboxSpec& spec, Image image, const Boot& boot,
                                             const Mounts& mounts, bool& misnamed);
  Task<Created<std::string>> ask_for_container(const runtime::SandboxSpec& spec, const Image& image,
                                               const Boot& boot, const Mounts& mounts, bool& misnamed);
  Task<Created<SandboxPtr>> make_container(const runtime::SandboxSpec& spec, const Image& image,
                                           const Boot& boot, const Mounts& mounts);
  Task<Created<void>> run_container(SandboxPtr sandbox, std::optional<Listeners> listeners,
                                    const Limits& limits, const Mounts& mounts);
  Task<Created<SandboxPtr>> start_container(const DockerPrepared& prepared, std::string record,
                                            const Mounts& mounts);
  // See docker_remote.cc.
  bool sees_other_files(const Error& error, const std::string& path);
  Task<Result<std::string>> find_boot_volume();
  // `image` is one that the engine has.
  Task<Result<std::string>> ensure_boot_volume(std::string image);
  struct Bringing;
  Task<> bring_execd(std::shared_ptr<Bringing> job, std::string image);
  Task<Result<std::string>> make_boot_volume(std::string image);
  Task<Result<void>> keep_vital_files(std::string handle);
  Task<Result<void>> note_boot_volume(std::string name);
  Task<Result<void>> fill_boot_volume(std::string name, std::string filler, std::string image);
  Task<> sweep_boot_volumes();
  Task<> forget_boot_volume(std::string name);
  Task<Result<std::unique_ptr<io::ForeignStream>>> hand_secret(std::string container, std::string secret);
  Task<Result<io::Stream>> knock_by_engine(SandboxPtr sandbox, knock::Wish wish);
  // See docker_reach.cc.
  Task<Result<io::Stream>> knock(SandboxPtr sandbox, knock::Wish wish);
  Task<Result<void>> hand_over(Listeners listeners, std::vector<FileId> shown);
  Result<void> find_way(Sandbox& sandbox, const Container& container);
  Task<Result<runtime::ControlConnection>> open_control(SandboxPtr sandbox);
  Task<Result<void>> await_execd(SandboxPtr sandbox);
  Task<Created<Mounts>> find_mounts(const runtime::SandboxSpec& spec, std::string image);
  Task<Created<void>> find_all(const runtime::SandboxSpec& spec, Mounts& out);
  // See docker_parts.cc.
  Task<Created<void>> find_parts(std::string handle, std::string image, Mounts& mounts);
  Task<Result<std::string>> ask_holder(std::string handle, std::string body);
  Task<Result<void>> remove_holder(std::string handle);
  Task<Result<FileId>> find_host_path(std::string path);
  Task<Created<ContainerMount>> find_volume(std::string owner, runtime::Mount mount,
                                            std::vector<MadeVolume>& made);
  // Whether another create makes it, which from now on leaves it alone.
  bool come_to_volume(const std::string& name);
  // The container of a handle; Code::not_found also for one that somebody else has made.
  Task<Result<Container>> find(std::string handle);
  Task<Result<std::string>> look_up(std::string handle);
  // The same, when the engine's id of it is known.
  Task<Result<Container>> find_again(std::string handle, std::string identity);
  bool is_ours(const Container& container, const std::string& handle) const;
  Task<> name_after(SandboxPtr sandbox, std::string id);
  // Another container of the same sandbox may have had to take a second name.
  void pass_name_on(const std::string& id);
  void track(SandboxPtr sandbox);
  Task<Result<void>> pause_both(Container container);
  Task<Result<void>> resume_both(Container container);
  Task<Result<io::Socket>> connect_port(std::string handle, uint16_t port);
  // What goes with a sandbox: volumes that are to, and an image of which nothing is left but its use.
  Task<> forget_volumes(std::vector<std::string> names);
  Task<> forget_image(std::string id);
  Task<> sweep();
  Task<Result<void>> hold_place(SandboxPtr sandbox);
  Task<> watch_waiting(SandboxPtr sandbox);
  using Started = Created<std::optional<runtime::ControlState>>;
  // A connection to execd that broke says nothing of the container: whether that ended (Code::not_found), or
  // nobody knows.
  Task<runtime::CreateFailure> judge(SandboxPtr sandbox, runtime::CreateFailure failure);
  Task<Started> start_waiting(SandboxPtr sandbox, runtime::EntryProcess entry);
  Task<Started> start_on_new_connection(SandboxPtr sandbox, runtime::EntryProcess entry);
  // See docker_network.cc.
  Task<Created<void>> open_network(SandboxPtr sandbox, std::string id, runtime::NetworkPolicy policy);
  Task<Result<io::Stream>> connect_egress(SandboxPtr sandbox);
  // See docker_sidecar.cc.
  Task<Created<std::string>> find_egress_image(std::string handle);
  Task<Created<std::string>> start_sidecar(const runtime::SandboxSpec& spec, std::string image,
                                           std::string boot, std::string token);
  Task<Result<void>> await_sidecar(std::string sidecar, std::string token, std::string boot);
  Task<Result<io::Stream>> connect_sidecar(std::string sidecar);
  Task<Result<std::string>> ask_sidecar(std::string sidecar, std::string token, std::string method,
                                        std::string path, std::string body);
  Task<Result<std::string>> ask_egress(io::Stream stream, std::string token, std::string method,
                                       std::string path, std::string body);
  Task<Result<void>> tell_sidecar(SandboxPtr sandbox, runtime::NetworkPolicy policy);
  Task<Result<std::optional<runtime::NetworkPolicy>>> sidecars_policy(SandboxPtr sandbox);
  Task<Result<void>> remove_sidecar(std::string handle);
  // The engine's id of it; Code::not_found.
  Task<Result<std::string>> look_up_sidecar(std::string handle);
  Task<Result<Container>> sidecar_of(const Container& sandbox);
  Task<Result<void>> pause_sidecar(const Container& sandbox);
  Task<Result<void>> resume_sidecar(const Container& sandbox);
  Task<Result<std::string>> ask_for_policy(SandboxPtr sandbox);
  Task<> look_at_sidecar(SandboxPtr sandbox);
  // See docker_inherited.cc.
  bool is_inherited(const Container& container, const std::string& handle) const;
  Task<Result<void>> list_inherited(std::set<std::string>& handles);
  Task<runtime::Inherited> inherit(Container container);
  Task<> find_inherited_way(SandboxPtr sandbox, const Container& container);
  Task<Result<Container>> find_sidecar(std::string id);
  Task<> sweep_sidecars();
  Task<Result<io::Socket>> connect_inherited(SandboxPtr sandbox, uint16_t port);
  Task<Result<Container>> find_running_sidecar(std::string id);
  Task<Result<io::Stream>> connect_others_egress(SandboxPtr sandbox);
  Task<Result<std::string>> ask_others_policy(SandboxPtr sandbox);
  Task<Result<std::optional<runtime::NetworkPolicy>>> others_policy(SandboxPtr sandbox);
  Task<Result<runtime::Output>> inherited_logs(std::string container);
  Task<> forget_inherited(SandboxPtr sandbox);
  // See docker_identity.cc.
  EngineIdentity identity_of_engine();
  Result<void> judge_engine(const std::string& id, const std::vector<Labels>& labels);
  // See docker_events.cc.
  std::optional<std::string> label_of_events() const;
  Task<> follow_events();
  Task<Error> follow_stream();
  Task<Result<void>> look_at_all(std::optional<std::string> label);
  bool is_sidecar(const std::map<std::string, std::string>& labels) const;
  void take(const EngineEvent& event);
  void note_paused(Sandbox& sandbox, bool paused);
  void tell_sidecar_end(const std::string& handle);
  // See docker_ends.cc.
  Task<> watch(SandboxPtr sandbox);
  Task<> hear(SandboxPtr sandbox, Result<End>& end);
  Task<End> end_of_one(Container container);
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
  std::map<std::string, std::weak_ptr<bool>> making_;  // volumes, by name; see MadeVolume
  bool swept_ = false, listens_ = false;
  std::function<void(runtime::News)> heard_;
  std::shared_ptr<io::Event> busy_;     // while somebody fills or removes volumes with execd; see Turn
  std::shared_ptr<Bringing> bringing_;  // while one is filled
};

struct DockerAbilities {
  bool policies = false;      // containers can have one
  bool own_kernel = false;    // they are started with something that gives them one
  bool host_network = false;  // they have the host's own network, which has no policies
  bool published = false;     // their ports are open to everybody
  bool remote = false;        // they are on another host
};
runtime::Capabilities docker_capabilities(DockerAbilities given);
DockerAbilities abilities_with(const DockerSettings& settings);

}  // namespace osb::docker
