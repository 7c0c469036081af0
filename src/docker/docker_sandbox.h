#pragma once

// What the runtime keeps about one container: no more than a server that is started again finds out.

#include "docker/docker_runtime.h"
#include "docker/inherited.h"

namespace osb::docker {

// On a volume that goes with the last sandbox that has it: the identity of the service that made it.
inline constexpr char kVolumeGoesLabel[] = "opensandbox.io/volume-goes-with";

// Whoever has one of these is alone at its place, until it is destroyed.
class Turn {
 public:
  using Place = std::shared_ptr<io::Event>;  // null: nobody is at it
  // Returns with nobody there, and the next to go on without a suspension has it. The place outlives both.
  static Task<> wait(const Place& place) {
    while (auto busy = place) co_await busy->wait();
  }
  Turn(Place& place, const io::Executor& executor)
      : place_(place), done_(std::make_shared<io::Event>(executor)) {
    place_ = done_;
  }
  ~Turn() {
    place_.reset();
    done_->set();
  }
  Turn(const Turn&) = delete;

 private:
  Place& place_;
  Place done_;
};

struct DockerRuntime::Sandbox {
  Sandbox(std::string handle_, std::string container_, const io::Executor& executor)
      : handle(std::move(handle_)),
        container(std::move(container_)),
        reachable(executor),
        over(executor),
        claimed(executor) {
    reachable.set();
  }
  // On another host.
  bool by_engine() const { return !boot.empty(); }
  void remember(const Container& seen) {
    inherited = !seen.labels.contains(kOwnerLabel);
    volumes = inherited ? inherited_volumes(seen.labels) : volumes_in(seen.labels);
    auto egress = seen.labels.find(kEgressLabel);
    has_policy = egress != seen.labels.end() && egress->second == kWithPolicy;
    if (inherited) others_egress = inherited_egress(seen);
    auto held = seen.labels.find(kHeldLabel);
    has_holder = held != seen.labels.end() && !held->second.empty() && !inherited;
    published = seen.published;
    if (auto volume = seen.labels.find(kBootLabel); volume != seen.labels.end() && !inherited)
      boot = volume->second;
    if (by_engine() && has_policy) sidecar = shared_network(seen);
    if (auto label = seen.labels.find(kIdLabel); label != seen.labels.end()) id = label->second;
    misnamed = !id.empty() && seen.name != container_name(id);
    auto snapshot = seen.labels.find(kSnapshotLabel);
    if (snapshot != seen.labels.end() && !snapshot->second.empty()) image = seen.image;
  }
  std::string handle;
  std::string container;                              // the engine's id of it
  std::string id = {};                                // what it is named after; "": after the handle
  bool misnamed = false;                              // another one has that name
  std::optional<runtime::ControlConnection> control;  // none: not connected yet, or no longer
  std::optional<runtime::ControlState> heard;         // said while it was started
  std::map<uint16_t, std::string> published = {};     // its ports, and where the host has them
  std::string secret = {};                            // of one that is reached by its network or by
  std::string address = {};                           // the engine, and where the first is
  std::string token = {};                             // of the egress of one on another host,
  std::string sidecar = {};                           // and the engine's id of that
  std::string user = {};                              // of what an engine starts in it; "": its own
  std::string boot = {};                              // the volume with its execd, of one on another host
  io::Event reachable;                                // not set: it was paused when it was taken over
  io::Event over;                                     // `end` says how, or why that is not known
  Result<End> end = fail(Code::cancelled, "the server ends");
  bool removed = false;
  bool paused = false;                            // as far as this server knows
  bool egress_ended = false;                      // of what polices it on another host, and told
  Turn::Place egress_turn;                        // at what polices it: pausing it, waking it
  bool inherited = false;                         // another server has made it: see docker_inherited.cc
  bool has_policy = false;                        // its network is led through the egress process
  std::optional<std::string> others_egress = {};  // or through a sidecar of another server, with this token
  bool has_holder = false;                        // a container beside it holds its volumes
  std::vector<std::string> volumes = {};          // by the engine's names
  std::vector<MadeVolume> made = {};  // of these, what was not there before: for a start that fails
  std::string image = {};             // the id of the one it was made from, when that is a snapshot
  // While it waits for a claim; set when that has come.
  std::optional<Limits> waiting = {};
  io::Event claimed;
};

// `standard`: variables for one that does not name them.
runtime::EntryProcess entry_of(const Claim& claim, const Limits& limits,
                               const std::map<std::string, std::string>& standard);

struct DockerPrepared : runtime::Prepared {
  runtime::SandboxSpec spec;
  Image image;
  std::string egress_image = {};  // the id of what polices it, on another host
};

// What an egress process answers about its policy.
Result<runtime::NetworkPolicy> policy_in(std::string_view answer);
// Of what polices a sandbox on another host.
inline constexpr char kEgressEnded[] =
    "the container that polices its network has ended; nothing leaves the sandbox, and its policy "
    "can neither be told nor changed";

// What the engine says about the end of a container of which execd said nothing.
End end_of(const Container& container);

}  // namespace osb::docker
