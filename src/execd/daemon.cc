#include "execd/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "execd/command_routes.h"
#include "execd/connections.h"
#include "execd/container.h"
#include "execd/control.h"
#include "execd/file_routes.h"
#include "execd/isolated_routes.h"
#include "execd/join.h"
#include "execd/knocks.h"
#include "execd/metrics.h"
#include "execd/port_relay.h"
#include "execd/process_setup.h"
#include "execd/pty_routes.h"
#include "execd/session_routes.h"
#include "execd/spawn.h"
#include "execd/sysinfo_answers.h"
#include "execd/watch_routes.h"
#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr int kApiFd = 3, kControlFd = 4, kPortsFd = 5, kBacklog = 512;
constexpr char kHandedSecret[] = "-";
constexpr auto kShutdownGrace = milliseconds(300);
// Whoever stops a container kills it after ten seconds, unless they say otherwise. Until then the entry
// process has to end, and its end to be told.
constexpr auto kStopGrace = std::chrono::seconds(7), kKillGrace = std::chrono::seconds(1),
               kTellGrace = std::chrono::seconds(2);

// Gives memory back when nothing has happened for a while. No timer runs in an idle process.
class Housekeeping {
 public:
  Housekeeping(io::Executor executor, Commands& commands) : timer_(executor), commands_(commands) {}

  void activity() {
    if (armed_) return;
    armed_ = true;
    timer_.expires_after(std::chrono::seconds(3));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      armed_ = false;
      commands_.sweep(wall_now());
      ::malloc_trim(0);
    });
  }

 private:
  io::asio::steady_timer timer_;
  Commands& commands_;
  bool armed_ = false;
};

class Daemon {
 public:
  Daemon(io::asio::io_context& context, Reaper& reaper, const Options& options)
      : core_(context.get_executor(), reaper),
        options_(options),
        entry_(core_),
        api_(core_, {options.access_token, options.port, options.native ? kEgressPort : uint16_t{0}}),
        commands_(core_),
        command_routes_(core_, commands_),
        workers_(core_.executor),
        file_routes_(core_, workers_),
        session_routes_(core_, workers_),
        metrics_routes_(core_, workers_),
        pty_routes_(core_, workers_),
        housekeeping_(core_.executor, commands_),
        server_(core_.executor, [this](http::Request& q, http::ResponseWriter& r) { return serve(q, r); }) {
    command_routes_.add_to(api_.router());
    file_routes_.add_to(api_.router());
    session_routes_.add_to(api_.router());
    metrics_routes_.add_to(api_.router());
    pty_routes_.add_to(api_.router());
    add_watch_route(api_.router(), core_, workers_);
    add_isolated_routes(api_.router());
    if (options.native) {
      api_.router().add("GET", "/entry/output", [this](http::Request&, http::ResponseWriter& r) {
        return reply_json(r, entry_.output_json());
      });
    }
    command_routes_.also_interrupt([this](std::string id) { return interrupt_session(std::move(id)); });
  }

  Core& core() { return core_; }
  Parts& parts() { return parts_; }
  io::Task<int> run();

 private:
  io::Task<> serve(http::Request& request, http::ResponseWriter& response) {
    housekeeping_.activity();
    co_await api_.handle(request, response);
  }
  io::Task<bool> interrupt_session(std::string id) { co_return session_routes_.destroy(id); }
  // Nobody has made listeners for it: connections come one by one.
  bool takes_connections() const { return options_.connections >= 0 || !options_.secret.empty(); }
  Result<Fd> listen();
  Result<void> open_door();
  io::Task<> take(Receivers receivers);
  io::Task<> run_control(int* code);
  io::Task<int> wait_for_termination();
  io::Task<> end_when_stopped();

  Core core_;
  Options options_;
  Fd channel_;          // where connections come from
  std::string secret_;  // in options_.secret
  Entry entry_;
  std::optional<Control> control_;  // native
  Api api_;
  Commands commands_;
  CommandRoutes command_routes_;
  Workers workers_;
  FileRoutes file_routes_;
  SessionRoutes session_routes_;
  MetricsRoutes metrics_routes_;
  PtyRoutes pty_routes_;
  Housekeeping housekeeping_;
  http::Server server_;
  Parts parts_{core_, api_, commands_, command_routes_, workers_, options_};
};

Result<Fd> Daemon::listen() {
  if (takes_connections()) return Fd();
  if (options_.native) return Fd(kApiFd);
  return io::listen_tcp("0.0.0.0", options_.port, kBacklog);
}

// The connections belong to this object, not to the task: a signal cancels the task while they are open.
io::Task<> Daemon::run_control(int* code) {
  control_.emplace(core_, entry_, takes_connections() ? Fd() : Fd(kControlFd));
  if (takes_connections()) {
    core_.tasks.spawn(take({.api = [this](io::Socket socket) { server_.adopt(std::move(socket)); },
                            .control = [this](io::Socket socket) { control_->adopt(std::move(socket)); }}));
  }
  *code = co_await control_->run();
}

io::Task<> Daemon::take(Receivers receivers) {
  if (options_.connections >= 0) return take_connections(core_, std::move(channel_), std::move(receivers));
  return answer_knocks(core_, std::move(channel_), std::move(secret_), std::move(receivers));
}

// What connections come from.
Result<void> Daemon::open_door() {
  if (options_.connections >= 0) channel_ = TRY(take_channel(options_.connections));
  if (!options_.secret.empty()) {
    bool handed = options_.secret == kHandedSecret;
    secret_ = TRY(handed ? take_secret(STDIN_FILENO) : read_secret(options_.secret));
    channel_ = TRY(io::listen_tcp(handed ? "127.0.0.1" : "0.0.0.0", options_.port, kBacklog));
  }
  return {};
}

// Until a signal ends this process; which. As PID 1 of a sandbox only one from outside counts (its sender has
// no pid here): the programs of the sandbox must not end it by accident.
io::Task<int> Daemon::wait_for_termination() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  // An image may say that it is stopped by this one, or by another.
  if (options_.native) ::sigaddset(&set, SIGQUIT);
  if (options_.stop_signal != 0) ::sigaddset(&set, options_.stop_signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  io::asio::posix::stream_descriptor fd(core_.executor);
  auto taken = io::assign(fd, Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)));
  // No reason to end: whoever wants that still has SIGKILL.
  if (!taken) {
    log::error("signals are not heard", {{"reason", taken.error().message}});
    co_await io::Event(core_.executor).wait();
  }
  while (co_await io::wait_readable(fd)) {
    signalfd_siginfo info;
    while (::read(fd.native_handle(), &info, sizeof info) == sizeof info) {
      if (!options_.native || info.ssi_pid == 0) co_return static_cast<int>(info.ssi_signo);
    }
  }
  co_return SIGTERM;
}

// The entry process gets the signal and a while. Whoever listens on the control connection hears its end.
io::Task<> Daemon::end_when_stopped() {
  constexpr size_t kBeforeItsEnd = 2;  // states: waiting, running
  int number = co_await wait_for_termination();
  if (entry_.state() != Entry::State::running) co_return;
  log::info("stopped from outside", {{"signal", number}});
  entry_.stop(number);
  if (co_await io::race(entry_.wait_beyond(kBeforeItsEnd), io::sleep_for(kStopGrace)) == 1) {
    entry_.kill();
    co_await io::race(entry_.wait_beyond(kBeforeItsEnd), io::sleep_for(kKillGrace));
  }
  co_await io::sleep_for(kTellGrace);  // run_control() is faster when it is acknowledged
}

io::Task<int> Daemon::run() {
  if (auto opened = open_door(); !opened) {
    log::error("cannot start", {{"reason", opened.error().message}});
    co_return 1;
  }
  auto listener = listen();
  if (!listener) {
    log::error("cannot listen", {{"reason", listener.error().message}});
    co_return 1;
  }
  core_.tasks.spawn(core_.reaper.run());
  if (listener->valid()) core_.tasks.spawn(server_.serve(std::move(*listener)));
  if (!options_.container.empty()) core_.tasks.spawn(relay_ports(core_.tasks, Fd(kPortsFd)));
  if (options_.open_port != 0) {
    auto open = io::listen_tcp("0.0.0.0", options_.open_port, kBacklog);
    if (!open) {
      log::error("cannot listen", {{"reason", open.error().message}});
      co_return 1;
    }
    core_.tasks.spawn(server_.serve(std::move(*open)));
  }
  if (!options_.native) log::info("listening", {{"port", options_.port}, {"version", OSB_VERSION}});
  int code = 0;
  if (options_.native) {
    if (co_await io::race(run_control(&code), end_when_stopped()) == 1) code = entry_.exit_code();
  } else {
    co_await wait_for_termination();
  }
  co_await server_.close(kShutdownGrace);
  co_return code;
}

int run_daemon(const Options& options, Environment env, const Extend& extend) {
  io::asio::io_context context(1);
  auto reaper = Reaper::create(context.get_executor());
  if (!reaper) {
    log::error("cannot start", {{"reason", reaper.error().message}});
    return 1;
  }
  Daemon daemon(context, **reaper, options);
  Core& core = daemon.core();
  if (!options.native) {
    add_defaults(env);
    core.env_file = env.get("EXECD_ENVS");
    core.env = std::move(env);
    char cwd[4096];
    if (::getcwd(cwd, sizeof cwd)) core.cwd = cwd;
    core.ready.set();
  }
  place_children(options.work_group, options.work_nice);
  bool own_kernel = options.connections >= 0 || (!options.secret.empty() && options.secret != kHandedSecret);
  core.own_kernel = own_kernel;
  if (own_kernel || !options.secret.empty())
    let_kernel_wait();  // gVisor clears a child's tid at its end only
  if (options.work_open_files) limit_open_files(*options.work_open_files);
  if (options.sysinfo_requests >= 0) answer_sysinfo(Fd(options.sysinfo_requests));
  if (extend) extend(daemon.parts());
  int code = 1;
  io::asio::co_spawn(context, daemon.run(), [&](const std::exception_ptr& thrown, int result) {
    code = thrown ? 1 : result;
    context.stop();
  });
  context.run();
  // Tasks may still wait for processes that live on; what they hold ends with this process.
  ::_exit(code);
}

}  // namespace

int daemon_main(int argc, char** argv, const Extend& extend) {
  set_up_process();
  Environment full = Environment::of_process();
  for (const char* name : {"EXECD_ACCESS_TOKEN", "JUPYTER_TOKEN"}) {
    if (const char* value = ::getenv(name)) full.set(name, value);
  }
  auto options = parse_options(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), full);
  if (!options) {
    ::fprintf(stderr, "execd: %s\n%s", options.error().message.c_str(), kUsage);
    return 2;
  }
  if (options->help) return ::fputs(kUsage, stdout), 0;
  if (options->version) return ::puts("execd " OSB_VERSION), 0;
  if (options->join) return join_streams(options->port);
  if (!options->parts.empty()) return ::fputs(find_parts(options->parts).c_str(), stdout) < 0 ? 1 : 0;
  // First: what comes after it opens files that the image's environment names.
  if (!options->container.empty()) {
    if (auto taken = take_listeners(options->container, options->shown); !taken) {
      log::error("cannot start", {{"reason", taken.error().message}});
      return 1;
    }
  }
  set_up_log(*options, full);
  if (auto done = set_up_clone3(full); !done) {
    log::error("cannot start", {{"reason", done.error().message}});
    return 1;
  }
  return run_daemon(*options, Environment::of_process(), extend);
}

}  // namespace osb::execd
