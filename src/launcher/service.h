#pragma once

// A process that the launcher keeps alive: started without privileges, with the descriptors it needs and a
// channel on which it may ask for some verbs, and started again when it ends.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/channel.h"

namespace osb::launcher {

// The status of a service that found something which no restart cures (EX_CONFIG of sysexits.h).
inline constexpr int kCannotStart = 78;

// How long to wait before the next start: longer each time, unless it lived for a while.
struct RestartPolicy {
  std::chrono::milliseconds first = std::chrono::milliseconds(50);
  std::chrono::milliseconds most = std::chrono::seconds(5);
  std::chrono::milliseconds healthy_after = std::chrono::seconds(10);
};

struct ServiceSpec {
  std::string name;  // for messages: "the server ended"
  int executable = -1;
  std::vector<std::string> arguments;  // with argument 0
  // Who it becomes; 0: it stays who the launcher is, and keeps nothing else (without root).
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};  // besides; none of root's
  // root: it keeps all that the launcher may, whatever uid says.
  enum class Rights { none, root } rights = Rights::none;
  // What it gets, and as which number (3 and up). All other descriptors are closed.
  struct Given {
    int descriptor = -1;
    int as = -1;
  };
  std::vector<Given> descriptors;
  // Whether it has the launcher's environment, in which the configuration travels with its secrets.
  enum class Environment { inherited, empty } environment = Environment::inherited;
  int channel_as = -1;  // likewise its end of the channel to the launcher; -1: it has none
  VerbSet verbs = {};
  RestartPolicy restart;
  std::chrono::milliseconds grace = std::chrono::seconds(8);  // between SIGTERM and SIGKILL
  // When it can never start (kCannotStart): the launcher ends with that status; else it goes on without.
  bool is_essential = true;
  // It is started when one of these can be read, and kept from then on; none: at once.
  std::vector<int> wakes = {};
  // A service that has a channel may say that it is ready by asking for something.
  enum class Ready { when_started, when_it_asks } ready = Ready::when_started;
};

struct ServiceProcess {
  pid_t pid = -1;
  Fd channel;  // the launcher's end
};
using Spawn = std::function<Result<ServiceProcess>(const ServiceSpec&)>;

// As a child of the caller, that ends with it.
Result<ServiceProcess> spawn_service(const ServiceSpec& spec);

// The state of one: runs, waits for its next start, or has ended for good.
class Service {
 public:
  using Clock = std::chrono::steady_clock;

  Service(ServiceSpec spec, Spawn spawn)
      : spec_(std::move(spec)), spawn_(std::move(spawn)), delay_(spec_.restart.first) {
    if (spec_.wakes.empty()) start_at_ = Clock::time_point{};
  }

  const ServiceSpec& spec() const { return spec_; }
  bool runs() const { return pid_ > 0; }
  bool is_ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  Channel* channel() { return channel_ ? &*channel_ : nullptr; }
  // When to start it; nothing: it runs, is not needed yet, or never will be again.
  std::optional<Clock::time_point> start_at() const { return start_at_; }

  // One of spec().wakes can be read.
  void wake() { start_at_ = Clock::time_point{}; }
  // What cannot be started is tried again later.
  Result<void> start(Clock::time_point now);
  void close_channel() { channel_.reset(); }
  void has_asked() { ready_ = true; }
  // Its process was waited for. False: it will not be started again.
  bool ended(int wait_status, Clock::time_point now);
  // While the launcher ends.
  void do_not_restart() {
    for_good_ = true;
    start_at_.reset();
  }
  void signal(int number) const;

 private:
  ServiceSpec spec_;
  Spawn spawn_;
  pid_t pid_ = -1;
  std::optional<Channel> channel_;
  bool ready_ = false;
  bool for_good_ = false;  // the next end is its last
  Clock::time_point started_{};
  std::optional<Clock::time_point> start_at_;
  Clock::duration delay_;
};

}  // namespace osb::launcher
