#include "execd/entry.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/last_words.h"
#include "base/log.h"
#include "execd/command_request.h"
#include "execd/directories.h"
#include "execd/paths.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

// Sandboxes outlive the server that made them, so a later one may read this. The number tells it which frames
// this execd knows; one that sends none is of the time before, which counts as 1.
constexpr int kControlProtocol = 2;

std::string state_json(std::string_view state, std::string_view more = {}) {
  return "{\"protocol\":" + std::to_string(kControlProtocol) + ",\"state\":\"" + std::string(state) + "\"" +
         std::string(more) + "}";
}

// Everything in this pid namespace but this process. Only PID 1 of a namespace may do that: anywhere else the
// same call would reach every process of the user.
void kill_all_others(pid_t entry_group) {
  if (::getpid() == 1) {
    ::kill(-1, SIGKILL);
  } else {
    ::kill(-entry_group, SIGKILL);
  }
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
  add_defaults(request.env);
  core_.env = request.env;
  core_.env_file = request.env.get("EXECD_ENVS");
  core_.cwd = request.cwd;
  core_.limits = request.limits;
  if (request.uid != 0 || request.gid != 0) core_.identity = credentials_of(request.uid, request.gid);
  prepare_directories(core_);

  SpawnRequest spawn_request;
  spawn_request.argv = std::move(request.argv);
  spawn_request.env = request.env.block();
  spawn_request.cwd = request.cwd;
  // Without a pipe its output is lost, which is no reason not to start it.
  auto output = output_->open();
  spawn_request.out = output ? output->get() : STDOUT_FILENO;
  spawn_request.err = output ? output->get() : STDERR_FILENO;
  spawn_request.group = Group::session;
  spawn_request.credentials = core_.identity;
  memory_kills_before_ = core_.memory_kills.look();
  auto pid = spawn(std::move(spawn_request));
  if (!pid) {
    std::string more = ",\"path\":";
    json::append_string(more, pid.error().path);
    more += ",\"errno\":" + std::to_string(pid.error().code) + ",\"message\":";
    json::append_string(more, pid.error().message);
    enter(State::failed, state_json("failed", more));
    return {};
  }
  pid_ = *pid;
  if (output) core_.tasks.spawn(EntryOutput::read(output_));
  core_.reaper.watch(pid_, [this](ExitStatus status) { on_exit(status); });
  enter(State::running, state_json("running", ",\"pid\":" + std::to_string(pid_)));
  core_.ready.set();
  return {};
}

void Entry::on_exit(ExitStatus status) {
  core_.ended = true;
  bool no_memory = core_.memory_kills.explains(status, memory_kills_before_);
  kill_all_others(pid_);
  output_->drain();
  std::string said = last_words(output_->log().text(), "\n");
  core_.how_it_ended = "the entry process has ended: " + status.text() +
                       (no_memory ? ": " + out_of_memory_text(core_.limits.memory_bytes) : "") +
                       (said.empty() ? "" : "; its last output:\n" + said);
  log::info("entry process ended", {{"how", status.text()}});
  std::string how = status.signalled() ? ",\"signal\":" + std::to_string(status.signal())
                                       : ",\"exit_code\":" + std::to_string(status.api_code());
  if (core_.memory_kills.known()) how += no_memory ? ",\"out_of_memory\":true" : ",\"out_of_memory\":false";
  std::string output = output_json();
  enter(State::ended, state_json("ended", how + "," + output.substr(1, output.size() - 2)));
}

}  // namespace osb::execd
