#include "execd/persistent_shell.h"

#include "execd/command_request.h"
#include "execd/env_file.h"
#include "execd/shell_script.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr auto kIdlePause = std::chrono::milliseconds(5);

}  // namespace

PersistentShell::PersistentShell(Core& core, std::string cwd)
    : core_(core), cwd_(std::move(cwd)), output_(core.executor) {}

std::expected<std::shared_ptr<PersistentShell>, SpawnError> PersistentShell::create(Core& core,
                                                                                    std::string cwd) {
  std::shared_ptr<PersistentShell> self(new PersistentShell(core, std::move(cwd)));
  auto output = open_pipe(self->output_);
  if (!output) return std::unexpected(SpawnError{output.error().sys_errno, "", output.error().message});
  self->output_for_shells_ = std::move(*output);
  self->file_env_ = read_env_file(core.env_file, core.env);
  Environment env = core.env;
  env.merge(self->file_env_);
  if (auto started = self->start_shell(env, self->cwd_); !started) return std::unexpected(started.error());
  self->shell_->make_keeper();
  core.tasks.spawn(read_output(self));
  return self;
}

std::expected<void, SpawnError> PersistentShell::start_shell(const Environment& env, const std::string& cwd) {
  auto found = find_shell(core_.env);
  if (found.name != "bash") {
    return std::unexpected(
        SpawnError{ENOENT, "bash", "sessions need bash, and this sandbox has none in its PATH"});
  }
  Environment with_shell = env;
  with_shell.set_default("SHELL", found.file);
  auto shell =
      Shell::start(core_, {found.file, cwd, std::move(with_shell), core_.identity, output_for_shells_.get()});
  if (!shell) return std::unexpected(shell.error());
  shell_ = std::move(*shell);
  return {};
}

io::Task<bool> PersistentShell::prepare() {
  if (destroyed_ || !co_await ensure_shell()) co_return false;
  co_await apply_env_file();
  co_return !destroyed_;
}

io::Task<PersistentShell::Outcome> PersistentShell::execute(std::string code, std::shared_ptr<Reader> reader,
                                                            io::Event& stop) {
  drain();  // what background jobs said while nobody listened
  reader_ = std::move(reader);
  Moment since = Moment::now();
  auto answer = shell_->run(code);
  if (!answer->changed.is_set()) co_await io::race(answer->changed.wait(), stop.wait());
  if (!answer->status && !answer->shell_ended) co_await shell_->wait_for_state_before(*answer);
  if (!answer->status && !answer->shell_ended) {
    shell_->kill_since(since);
    co_await answer->changed.wait();
  }
  drain();
  reader_.reset();
  Outcome outcome{answer->status, shell_->exit()};
  co_return outcome;
}

io::Task<bool> PersistentShell::ensure_shell() {
  if (shell_->alive()) co_return true;
  auto state = co_await shell_->recover();
  if (destroyed_) co_return false;
  if (!state) {
    // Even the keeper is gone. What is left is how it all began.
    Environment env = core_.env;
    file_env_ = read_env_file(core_.env_file, core_.env);
    env.merge(file_env_);
    if (!start_shell(env, cwd_)) co_return false;
    shell_->make_keeper();
    co_return true;
  }
  // The state says what is exported; starting from nothing keeps variables away that were unset.
  if (!start_shell({}, "/")) co_return false;
  bool restored =
      (co_await shell_->control("\\builtin eval " + shell::quote(*state) + " >/dev/null 2>&1")).has_value();
  shell_->make_keeper();
  co_return restored;
}

// Variables that clients wrote into the env file since the shell started.
io::Task<> PersistentShell::apply_env_file() {
  auto now = read_env_file(core_.env_file, core_.env);
  if (now == file_env_) co_return;
  std::string code;
  for (const auto& [name, value] : now) {
    auto known = file_env_.find(name);
    if (known != file_env_.end() && known->second == value) continue;
    code += "\\builtin export " + shell::quote(name + "=" + value) + " 2>/dev/null\n";
  }
  file_env_ = std::move(now);
  if (code.empty()) co_return;
  co_await shell_->control(std::move(code));
  shell_->make_keeper();
}

io::Task<> PersistentShell::read_output(std::shared_ptr<PersistentShell> self) {
  while (co_await io::wait_readable(self->output_)) {
    if (!read_pipe(self->output_.native_handle(), kPipeBytes, [&](auto bytes) { self->take(bytes); })) break;
    // Nobody listens: what runs in the background may wait.
    if (!self->reader_) co_await io::sleep_for(kIdlePause);
    // Held here: the run may be over, and forgotten, before its client has made room.
    if (auto reader = self->reader_; reader && reader->strained()) co_await reader->wait_for_room();
  }
}

void PersistentShell::take(std::string_view bytes) {
  if (reader_) reader_->on_output(bytes);
}

void PersistentShell::drain() {
  drain_pipe(output_.native_handle(), [this](std::string_view bytes) { take(bytes); });
}

void PersistentShell::destroy() {
  destroyed_ = true;
  shell_->kill_all();
  output_for_shells_.reset();
}

}  // namespace osb::execd
