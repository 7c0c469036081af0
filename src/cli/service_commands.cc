// `osb server start`, `stop` and `status`: a service in the background of this user, for a machine without a
// service manager, and the end of one that was started for an occasion.

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/block_on.h"
#include "cli/command_tree.h"
#include "cli/occasion.h"
#include "cli/service_record.h"
#include "server/config.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kStartTime = 20s, kStopTime = 30s;

Result<std::string> service_directory() {
  const char* home = std::getenv("HOME");
  if (!home || !*home)
    return fail(Code::invalid_argument,
                "HOME is not set, and its .opensandbox/server keeps the pid and the log");
  std::string dir = std::string(home) + "/.opensandbox/server";
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return fail_errno("make " + dir, error.value());
  return dir;
}

// Where the service of this configuration answers.
Result<Connection> address_of(const std::string& config_file) {
  server::Environment environment = [](const char* name) { return std::getenv(name); };
  std::optional<std::string> flag = config_file.empty() ? std::nullopt : std::optional(config_file);
  auto config = TRY(server::load_config(server::config_path(flag, environment), environment));
  std::string host =
      config.server.host == "0.0.0.0" || config.server.host == "::" ? "127.0.0.1" : config.server.host;
  Connection to;
  to.server.host = host;
  to.server.port = config.server.port;
  return to;
}

Task<int> ask_health(Connection to, bool* healthy) {
  Api api(std::move(to));
  *healthy = (co_await api.health()).has_value();
  co_return 0;
}

bool is_healthy(const Connection& to) {
  bool healthy = false;
  block_on(ask_health(to, &healthy));
  return healthy;
}

std::vector<const char*> service_words(const std::string& config_file) {
  std::vector<const char*> words{"opensandbox-server"};
  if (!config_file.empty()) words.insert(words.end(), {"--config", config_file.c_str()});
  words.push_back(nullptr);
  return words;
}

[[noreturn]] void become_service(const std::string& config_file) {
  auto words = service_words(config_file);
  ::execv("/proc/self/exe", const_cast<char* const*>(words.data()));
  ::_exit(126);
}

Result<pid_t> start_in_background(const std::string& dir, const std::string& config_file) {
  Fd log(::open((dir + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!log.valid() || !null.valid()) return fail_errno("open " + dir + "/log");
  pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) {
    ::setsid();
    ::dup2(null.get(), 0);
    ::dup2(log.get(), 1);
    ::dup2(log.get(), 2);
    // By itself: whoever started it may be killed at any moment.
    if (auto written = write_own_record(dir + "/pid", 0, ""); !written) {
      print_error("osb", written.error());
      ::_exit(1);
    }
    become_service(config_file);
  }
  return pid;
}

Result<Fd> wait_for_lock(const std::string& path) {
  auto until = std::chrono::steady_clock::now() + kStartTime + kStopTime;
  while (std::chrono::steady_clock::now() < until) {
    auto lock = TRY(try_lock(path));
    if (lock) return std::move(*lock);
    ::usleep(20'000);
  }
  return fail(Code::timeout, "another osb starts the server, and does not come to an end");
}

struct ServiceCommand {
  std::string config;
  virtual ~ServiceCommand() = default;
  virtual void options(CLI::App& app) {
    app.add_option("--config", config,
                   "the service's configuration (default: $SANDBOX_CONFIG_PATH, else ~/.sandbox.toml)");
  }
  virtual Result<int> run() = 0;
  Result<Action> read(const CommandTree::Words&) {
    return Action{[this](const Embedded&) {
      auto status = run();
      if (status) return *status;
      print_error("osb", status.error());
      return 1;
    }};
  }
};

struct Start : ServiceCommand {
  bool detach = false;
  void options(CLI::App& app) override {
    ServiceCommand::options(app);
    app.add_flag("-d,--detach", detach, "in the background; returns when it answers");
    app.footer(
        "Without --detach it is opensandbox-server itself. Its pid and log are in ~/.opensandbox/server.");
  }
  Result<int> run() override {
    if (!detach) become_service(config);
    std::string dir = TRY(service_directory());
    Fd lock = TRY(wait_for_lock(dir + "/lock"));
    Connection to = TRY(address_of(config));
    auto there = read_record(dir + "/pid");
    if (!there && is_healthy(to))
      return fail(Code::already_exists, fmt::format("another server answers at {}", to.server.authority()));
    pid_t pid = there ? there->pid : TRY(start_in_background(dir, config));
    auto until = std::chrono::steady_clock::now() + kStartTime;
    while (!is_healthy(to)) {
      int status = 0;
      if ((!there && ::waitpid(pid, &status, WNOHANG) == pid) || (there && !is_alive(*there)))
        return fail(Code::unavailable,
                    fmt::format("the server ended instead of answering; its last words are in {}/log", dir));
      if (std::chrono::steady_clock::now() > until)
        return fail(Code::timeout,
                    fmt::format("the server does not answer at {}; see {}/log", to.server.authority(), dir));
      ::usleep(20'000);
    }
    if (there)
      fmt::print("the server runs already, pid {}\n", pid);
    else
      fmt::print("the server answers at {}, pid {}; log: {}/log\n", to.server.authority(), pid, dir);
    return 0;
  }
};

// What this user's commands started: by hand, and for an occasion.
struct Started {
  std::string record, lock;
};
std::vector<Started> what_was_started(const std::string& dir) {
  std::vector<Started> out{{dir + "/pid", dir + "/lock"}};
  if (auto place = occasion_place()) out.push_back({place->record(), place->lock()});
  return out;
}

struct Stop : ServiceCommand {
  Result<int> run() override {
    std::string dir = TRY(service_directory());
    int ended = 0;
    for (const Started& started : what_was_started(dir)) {
      if (!read_record(started.record)) continue;
      // Nobody starts the next one before the record of this one is gone: it would go in its place.
      Fd lock = TRY(wait_for_lock(started.lock));
      auto record = read_record(started.record);
      if (!record) continue;
      TRY(end_service(*record, kStopTime));
      ::unlink(started.record.c_str());
      ++ended;
    }
    if (ended == 0)
      return fail(Code::not_found,
                  "no server that `osb server start --detach` or an osb command started runs");
    fmt::print("the server has ended; its sandboxes live on\n");
    return 0;
  }
};

struct Status : ServiceCommand {
  Result<int> run() override {
    std::string dir = TRY(service_directory());
    Connection to = TRY(address_of(config));
    auto there = read_record(dir + "/pid");
    bool healthy = is_healthy(to);
    std::string process =
        there ? fmt::format("runs, pid {}", there->pid) : "was not started by osb server start --detach";
    fmt::print("process   {}\nanswers   {} at {}\n", process, healthy ? "yes," : "no,",
               to.server.authority());
    auto place = occasion_place();
    auto occasion = place ? read_record(place->record()) : std::nullopt;
    if (!occasion) return healthy ? 0 : 1;
    fmt::print("occasion  runs, pid {}, at 127.0.0.1:{}; its key is in {}\n", occasion->pid, occasion->port,
               place->record());
    return 0;
  }
};

}  // namespace

void add_service(CommandTree& tree) {
  CLI::App& server = tree.group("server", "start and stop a server on this machine");
  tree.add<Start>(server, "start", "start a server, in the background with --detach");
  tree.add<Stop>(server, "stop", "end the server in the background; its sandboxes live on");
  tree.add<Status>(server, "status", "whether a server runs and answers; exit status 1 when none does");
}

}  // namespace osb::cli
