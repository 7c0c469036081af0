#include "execd/entry.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/idle_entry.h"
#include "base/last_words.h"
#include "base/log.h"
#include "execd/bootstrap.h"
#include "execd/command_request.h"
#include "execd/directories.h"
#include "execd/paths.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

// Sandboxes outlive the server that made them, so a later one may read this. The number tells it which frames
// this execd knows; one that sends none is of the time before, which counts as 1.
constexpr int kControlProtocol = 3;
// How much later one starts that only waits: where a kernel of its own needs both processors for a start, and
// in a sandbox that was claimed a moment ago.
constexpr auto kIdleInOwnKernel = std::chrono::milliseconds(300),
               kIdleInClaimed = std::chrono::milliseconds(20);
// As a shell says it.
constexpr int kCannotExecute = 127, kSignalled = 128;

std::string state_json(std::string_view state, std::string_view more = {}) {
  return "{\"protocol\":" + std::to_string(kControlProtocol) + ",\"state\":\"" + std::string(state) + "\"" +
         std::string(more) + "}";
}

// Everything in this pid namespace but this process. Only PID 1 of a namespace may do that: anywhere else the
// same call would reach every process of the user.
void kill_all_others(pid_t entry_group) {
  if (::getpid() == 1) {
    ::kill(-1, SIGKILL);
  } else if (entry_group > 0) {
    ::kill(-entry_group, SIGKILL);
  }
}

// An engine has made execd's environment and directory from the image.
void inherit(EntryRequest& request) {
  Environment env = Environment::of_process();
  for (const auto& [name, value] : request.env) env.set(name, value);
  request.env = std::move(env);
  char cwd[4096];
  if (::getcwd(cwd, sizeof cwd)) request.cwd = cwd;
}

// All best effort: whoever needs what could not be made will say so.
void prepare_directories(const Core& core) {
  // A work directory that an image names but does not contain is made, as other runtimes do.
  [[maybe_unused]] auto made_cwd = make_directories(core.cwd);
  // Commands write into the env file, whoever they run as.
  if (core.env_file.empty() || core.env_file[0] != '/') return;
  std::string dir(parent_path(clean_path(core.env_file, "/")));
  auto made = make_directories(dir);
  if (!made || !*made || !core.identity) return;
  [[maybe_unused]] int given = ::chown(dir.c_str(), core.identity->uid, core.identity->gid);
}

}  // namespace

Result<EntryRequest> parse_entry(std::string_view frame) {
  auto value = TRY(json::parse(frame));
  json::Issues issues;
  json::Field init = json::Field::root(value, issues, "frame")["init"];
  EntryRequest request;
  request.argv = init["argv"].string_list().value_or(std::vector<std::string>());
  if (request.argv.empty()) init["argv"].complain("missing", "must name a program");
  for (const json::Field& pair : init["env"].array().value_or(std::vector<json::Field>())) {
    auto words = pair.string_list().value_or(std::vector<std::string>());
    if (words.size() != 2 || words[0].empty()) {
      pair.complain("value_error", "must be a name and a value");
      continue;
    }
    request.env.set(std::move(words[0]), std::move(words[1]));
  }
  request.cwd = init["cwd"].string().value_or("/");
  if (request.cwd.empty()) request.cwd = "/";
  request.inherits = init["inherit"].boolean().value_or(false);
  for (auto [field, target] : {std::pair{"uid", &request.uid}, std::pair{"gid", &request.gid}}) {
    int64_t id = init[field].integer().value_or(0);
    if (id < 0 || id >= 0xFFFFFFFF) init[field].complain("value_error", "is no id");
    *target = static_cast<uint32_t>(id);
  }
  for (auto [field, target] : {std::pair{"cpu_millis", &request.limits.cpu_millis},
                               std::pair{"memory_bytes", &request.limits.memory_bytes}}) {
    *target = init[field].integer();
    if (*target && **target <= 0) init[field].complain("value_error", "must be positive");
  }
  if (!issues.empty()) {
    const json::Issue& issue = issues.list().front();
    return fail(Code::invalid_argument, json::to_string(issue.path) + ": " + issue.message);
  }
  return request;
}

std::string Entry::output_json() const {
  std::string out = "{\"output\":";
  json::append_string(out, output_->log().text());
  return out + (output_->log().forgot() ? ",\"truncated\":true}" : ",\"truncated\":false}");
}

Entry::Entry(Core& core)
    : core_(core), output_(std::make_shared<EntryOutput>(core.executor)), changed_(core.executor) {
  history_.push_back(state_json("waiting"));
}

io::Task<> Entry::wait_beyond(size_t seen) {
  while (history_.size() <= seen) {
    changed_.reset();
    co_await changed_.wait();
  }
}

void Entry::enter(State state, std::string json) {
  state_ = state;
  history_.push_back(std::move(json));
  changed_.set();
}

Result<void> Entry::start(EntryRequest request) {
  if (state_ != State::waiting) return fail(Code::wrong_state, "the entry process was started already");
  auto parsed = parse_hooks(request.env.get(kHooksVariable));
  if (!parsed) return refuse({.path = "lifecycle", .message = parsed.error().message}), Result<void>();
  Hooks hooks = std::move(*parsed);
  request.env.remove(kHooksVariable);
  if (request.inherits) inherit(request);
  add_defaults(request.env);
  core_.env = request.env;
  core_.env_file = request.env.get("EXECD_ENVS");
  core_.cwd = request.cwd;
  core_.limits = request.limits;
  if (request.uid != 0 || request.gid != 0) core_.identity = credentials_of(request.uid, request.gid);
  prepare_directories(core_);

  auto words = bootstrap(std::move(request.argv), core_.env);
  if (!words)
    return refuse({.code = ENOENT, .path = "entrypoint", .message = words.error().message}), Result<void>();
  argv_ = std::move(*words);
  periodic_ = std::move(hooks.periodic);
  // Without a pipe its output is lost, which is no reason not to start it.
  if (auto output = output_->open()) output_end_ = std::make_shared<Fd>(std::move(*output));
  bool heard = output_end_ != nullptr;
  memory_kills_before_ = core_.memory_kills.look();
  if (hooks.pre_start) {
    start_hook(std::move(*hooks.pre_start));
  } else if ((core_.own_kernel || held_) && is_idle_entry(argv_)) {
    enter(State::running, state_json("running", ",\"pid\":0"));
    core_.ready.set();
    core_.tasks.spawn(start_program_later());
  } else {
    start_program();
  }
  if (state_ == State::running && heard) core_.tasks.spawn(EntryOutput::read(output_));
  return {};
}

void Entry::stop(int number) {
  if (state_ != State::running) return;
  stop_signal_ = number;
  if (pid_ > 0)
    ::kill(-pid_, number);
  else
    on_exit(ExitStatus(0));
}

void Entry::kill() {
  if (state_ == State::running && pid_ > 0) ::kill(-pid_, SIGKILL);
}

void Entry::rehearse() {
  if (state_ != State::waiting) return;
  held_ = true;
  Environment env;
  add_defaults(env);
  // What decodes a frame and a request is the same code; it is read from the disk or mapped here and now.
  [[maybe_unused]] auto frame = parse_entry(R"({"init":{"argv":["a"],"env":[["a","b"]],"cwd":"/"}})");
  if (auto body = json::parse(R"({"command":"echo x"})")) {
    [[maybe_unused]] auto command = decode_command(*body, core_);
  }
  core_.memory_kills.look();
  ShellProgram shell = find_shell(env);
  if (shell.file.empty()) return;
  SpawnRequest request;
  request.program = shell.file;
  request.argv = {shell.name, "-c", ":"};
  request.env = env.block();
  request.cwd = "/";
  if (auto pid = spawn(std::move(request))) core_.reaper.watch(*pid, [](ExitStatus) {});
}

void Entry::refuse(const SpawnError& error) {
  std::string more = ",\"path\":";
  json::append_string(more, error.path);
  more += ",\"errno\":" + std::to_string(error.code) + ",\"message\":";
  json::append_string(more, error.message);
  enter(State::failed, state_json("failed", more));
}

// False, and the state is "failed", when it cannot be executed.
bool Entry::launch(std::vector<std::string> argv, Reaper::Ended ended) {
  // After "running" was told nothing about an idle one is anybody's affair.
  bool waits = is_idle_entry(argv);
  SpawnRequest request;
  request.argv = std::move(argv);
  request.env = core_.env.block();
  request.cwd = core_.cwd;
  request.out = output_end_ ? output_end_->get() : STDOUT_FILENO;
  request.err = output_end_ ? output_end_->get() : STDERR_FILENO;
  request.group = Group::session;
  request.credentials = core_.identity;
  auto pid = spawn(std::move(request));
  if (!pid && waits && (pid.error().code == ENOENT || state_ == State::running)) {
    if (pid.error().code != ENOENT) output_->note(pid.error().message);
    if (state_ == State::waiting) enter(State::running, state_json("running", ",\"pid\":0"));
    return true;
  }
  if (!pid) {
    if (state_ == State::waiting) {
      refuse(pid.error());
    } else {  // after a hook: it has been told that the sandbox runs
      output_->note(pid.error().message);
      on_exit(ExitStatus(kCannotExecute << 8));
    }
    return false;
  }
  pid_ = *pid;
  core_.reaper.watch(pid_, std::move(ended));
  if (state_ == State::waiting)
    enter(State::running, state_json("running", ",\"pid\":" + std::to_string(pid_)));
  return true;
}

void Entry::start_hook(Hook hook) {
  auto ended = std::make_shared<bool>(false);
  auto began = std::chrono::steady_clock::now();
  bool started = launch(std::move(hook.argv), [this, ended, began, limit = hook.timeout](ExitStatus status) {
    *ended = true;
    bool late = std::chrono::steady_clock::now() - began >= limit;
    on_hook_exit(status, limit, late);
  });
  if (started) core_.tasks.spawn(end_in_time(pid_, hook.timeout, ended));
}

void Entry::on_hook_exit(ExitStatus status, std::chrono::seconds limit, bool late) {
  if (!status.signalled() && status.api_code() == 0) {
    if (stop_signal_ == 0) return start_program();
    return on_exit(status);
  }
  output_->drain();
  output_->note("the preStart hook failed: " +
                (late ? "time limit of " + std::to_string(limit.count()) + " s" : status.text()));
  on_exit(status);
}

// One that only waits can do so a little later, where its start would take the processors from the first
// command: whoever made the sandbox has something to run.
io::Task<> Entry::start_program_later() {
  co_await io::sleep_for(core_.own_kernel ? kIdleInOwnKernel : kIdleInClaimed);
  if (!core_.ended) start_program();
}

void Entry::start_program() {
  if (!launch(std::move(argv_), [this](ExitStatus status) { on_exit(status); })) return;
  for (Hook& hook : periodic_) core_.tasks.spawn(run_periodic(core_, std::move(hook), output_end_, output_));
  // Its end is the end of its output, unless hooks write to it as well.
  output_end_.reset();
  core_.ready.set();
}

void Entry::on_exit(ExitStatus status) {
  core_.ended = true;
  core_.ready.set();  // who still waits for a hook gets an answer
  bool no_memory = core_.memory_kills.explains(status, memory_kills_before_);
  kill_all_others(pid_);
  output_->drain();
  std::string said = last_words(output_->log().text(), "\n");
  core_.how_it_ended = "the entry process has ended: " + status.text() +
                       (no_memory ? ": " + out_of_memory_text(core_.limits.memory_bytes) : "") +
                       (said.empty() ? "" : "; its last output:\n" + said);
  log::info("entry process ended", {{"how", status.text()}});
  exit_code_ = status.signalled() ? kSignalled + status.signal() : status.api_code();
  // Shells and some languages' programs end with this code when the signal comes.
  bool as_told = stop_signal_ != 0 && exit_code_ == kSignalled + stop_signal_;
  if (as_told) exit_code_ = 0;
  std::string how = status.signalled() && !as_told ? ",\"signal\":" + std::to_string(status.signal())
                                                   : ",\"exit_code\":" + std::to_string(exit_code_);
  if (stop_signal_ != 0) how += ",\"stopped\":true";
  if (core_.memory_kills.known()) how += no_memory ? ",\"out_of_memory\":true" : ",\"out_of_memory\":false";
  std::string output = output_json();
  enter(State::ended, state_json("ended", how + "," + output.substr(1, output.size() - 2)));
}

}  // namespace osb::execd
