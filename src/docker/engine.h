#pragma once

// The Engine API, version 1.41 and later, over a unix socket or TCP (engine_link.h). One call is one exchange
// on a connection of its own or on one that an earlier call left open; whatever is answered has a bound, and
// every call a deadline, except the one that waits for an end.
//
// Code::unavailable and Code::timeout: nobody knows (runtime/runtime.h). Code::not_found and
// Code::wrong_state are the engine's 404 and 409 or 304; Code::invalid_argument its 400; anything else that
// it refuses is Code::internal with its words.

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "docker/answers.h"
#include "docker/engine_events.h"
#include "docker/engine_identity.h"
#include "docker/engine_link.h"
#include "io/stream.h"

namespace osb::docker {

struct EngineSettings {
  std::string socket = "/var/run/docker.sock";
  io::Duration timeout = std::chrono::seconds(180);  // of calls that make or change something
  std::optional<TcpEngine> tcp = {};                 // instead of the socket
  ConnectForUs by_root = {};                         // see EngineAddress
};

// For a registry, as the engine wants it.
struct RegistryLogin {
  std::string username, password, server;
};

class Engine {
 public:
  explicit Engine(EngineSettings settings)
      : settings_(std::move(settings)), address_{settings_.socket, settings_.tcp, settings_.by_root} {}
  // Before the first call: from then on all fail while another one answers. None: whoever answers is
  // believed.
  void know_by(EngineIdentity identity) { identity_ = std::move(identity); }
  // What it has said of itself, its id first: another one may stand behind the address by now. The next call
  // asks.
  void forget();
  // Ends connections that TLS carries; no call runs any more.
  Task<> close();

  // The version that is spoken.
  Task<Result<ApiVersion>> spoken();
  // What the engine says of itself; asked once, and again after the engine was away.
  Task<Result<EngineVersion>> version();
  // What its processors are called ("amd64"); "" when it does not say.
  Task<Result<std::string>> machine();
  // Podman, which has the same API and leaves out some of it.
  Task<Result<bool>> is_podman();
  Task<Result<void>> ping();
  Task<Result<std::vector<std::string>>> runtimes();
  // How many it has for containers; 0 when it does not say. Asked once, like version().
  Task<int64_t> processors();

  Task<Result<Image>> image(std::string reference);
  // Returns when it is here. `progress` hears what is done.
  Task<Result<void>> pull(std::string name, std::string tag, std::string platform,
                          std::optional<RegistryLogin> login, std::function<void(std::string)> progress);

  // See engine_storage.cc for the rest of these.
  // What the container has changed, as an image of its own over the container's; it stands still meanwhile.
  // The image's id.
  Task<Result<std::string>> commit(std::string container, std::string repository, std::string tag,
                                   std::string body, std::vector<std::string> changes);
  enum class Used { refused, untagged };
  // Code::wrong_state: something uses it. A name goes all the same with Used::untagged, and with it what
  // nothing uses. Code::not_found.
  Task<Result<void>> remove_image(std::string reference, Used used);
  Task<Result<std::vector<Image>>> images_with(std::string label);
  Task<Result<std::vector<sandbox::FileChange>>> changes(std::string container);

  Task<Result<Volume>> volume(std::string name);
  Task<Result<void>> create_volume(std::string name, std::map<std::string, std::string> labels);
  enum class Which { all, unused };
  Task<Result<std::vector<Volume>>> volumes_with(std::string label, Which which);
  Task<Result<void>> remove_volume(std::string name);  // Code::wrong_state: a container has it

  // Whether there is one; Code::not_found.
  Task<Result<void>> network(std::string name);

  Task<Result<std::string>> create(std::string name, std::string platform, std::string body);
  Task<Result<void>> start(std::string container);
  Task<Result<Container>> inspect(std::string container);
  // Until it does not run any more; no deadline. Its status.
  Task<Result<int>> wait(std::string container);
  Task<Result<std::string>> logs(std::string container);  // the last part of what it wrote
  Task<Result<void>> pause(std::string container);
  Task<Result<void>> unpause(std::string container);
  Task<Result<void>> kill(std::string container);
  // With its anonymous volumes. Returns when it is gone.
  Task<Result<void>> remove(std::string container);
  // See engine_events.h. Of containers with this label; none: of all.
  Task<Result<EventStream>> events(std::optional<std::string> label);
  // See engine_exec.cc.
  // A program in a container that runs, as a connection to it; see ExecStream. Code::wrong_state: it is
  // paused. The limit is the caller's. `user`: "" is the container's own.
  Task<Result<std::unique_ptr<io::ForeignStream>>> exec(std::string container, std::vector<std::string> words,
                                                        std::string user = {});
  // What its first process reads, also of one that is not started yet. The limit is the caller's.
  Task<Result<std::unique_ptr<io::ForeignStream>>> attach_input(std::string container);
  // A tar archive, into a directory of a container that need not run.
  Task<Result<void>> unpack(std::string container, std::string directory, std::string archive);
  // Code::wrong_state: another one has this name.
  Task<Result<void>> rename(std::string container, std::string name);
  // Of those that have all of these labels, whatever they do.
  Task<Result<std::vector<Listed>>> containers_with(std::vector<std::string> labels);
  // Of all containers that have this label, whatever they do.
  Task<Result<std::vector<std::map<std::string, std::string>>>> labels_of_all(std::string label);

 private:
  Task<Result<std::string>> untag(std::string name);
  struct Call {
    std::string method, path;  // the path without its version
    std::string body = {};
    size_t most = 1 << 20;
    http::Headers headers = {};
  };
  Task<Result<Link>> connect();
  Error away(Error error) const;
  Task<Result<http::Response>> exchange(Call call);
  Task<Result<std::string>> ask(Call call);  // a refusal is an error
  Task<Result<std::string>> ask_in_time(Call call);
  Task<Result<std::string>> ask_within(io::Duration limit, Call call);
  Task<Result<void>> follow_pull(Call call, std::function<void(std::string)> progress);
  Task<Result<std::string>> prefix();
  // See engine_identity.cc.
  Task<Result<void>> recognise(EngineVersion version);
  Task<Result<void>> recognise_again();
  static Call list_call(const std::string& prefix, std::vector<std::string> labels);
  static Error refusal(int status, std::string_view body);
  Task<Result<Link>> open_events(std::string path);
  Task<Result<Link>> become_stream(Call call);
  Task<Result<std::unique_ptr<io::ForeignStream>>> stream(Call call);
  Task<Result<std::string>> list_with(std::vector<std::string> labels);

  EngineSettings settings_;
  EngineAddress address_;
  std::optional<EngineIdentity> identity_;
  std::optional<io::TaskGroup> pumps_;  // since the first call
  std::deque<Link> idle_;
  std::optional<EngineVersion> version_;
  std::optional<int64_t> processors_;
};

// As a reference stands in a path: its slashes are part of it.
std::string reference_path(std::string_view reference);

// The newest that both sides speak. Code::unsupported says what to do.
Result<ApiVersion> choose_version(const EngineVersion& engine);

}  // namespace osb::docker
