#include "execd/shell.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/strings.h"
#include "execd/proc_stat.h"
#include "execd/shell_script.h"
#include "io/running_time.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr auto kKeeperDeadline = std::chrono::seconds(2);
constexpr auto kRecoverDeadline = std::chrono::seconds(5);
constexpr size_t kMaxState = 64 << 20;
constexpr std::string_view kWake = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";

struct Processes {
  struct Entry {
    pid_t pid;
    ProcStat stat;
  };
  Moment seen;
  std::vector<Entry> list;
  static Processes now() {
    Processes out;
    out.seen = Moment::now();
    for_each_process([&](pid_t pid, const ProcStat& stat) { out.list.push_back({pid, stat}); });
    return out;
  }
};

// What `shell` started since then, with everything below: children that are older belong to earlier commands,
// and so does whatever they start.
std::set<pid_t> started_since(const Processes& processes, pid_t shell, const Moment& since) {
  std::set<pid_t> found;
  for (bool grown = true; grown;) {
    grown = false;
    for (const auto& [pid, stat] : processes.list) {
      bool ours = found.contains(stat.parent) ||
                  (stat.parent == shell && since.before_start_of(pid, stat, processes.seen));
      if (ours && found.insert(pid).second) grown = true;
    }
  }
  return found;
}

}  // namespace

Shell::Shell(Core& core)
    : core_(core),
      first_descriptor_(shell::first_descriptor(open_files_limit())),
      requests_(core.executor),
      answers_(core.executor),
      keeper_changed_(core.executor),
      recovered_(core.executor) {}

Shell::~Shell() { kill_keeper(); }

// The ends for the shell come back in the arguments.
Result<void> Shell::open_pipes(Fd& requests, Fd& answers, Fd& wake) {
  requests = TRY(open_pipe(requests_, Ours::writes));
  answers = TRY(open_pipe(answers_));
  PipeEnds waking = TRY(make_pipe(Ours::writes));
  wake_ = std::move(waking.ours);
  wake = std::move(waking.theirs);
  return {};
}

std::expected<std::shared_ptr<Shell>, SpawnError> Shell::start(Core& core, const ShellStart& start) {
  std::shared_ptr<Shell> self(new Shell(core));
  Fd requests, answers, wake;
  if (auto opened = self->open_pipes(requests, answers, wake); !opened) {
    return std::unexpected(SpawnError{opened.error().sys_errno, "", opened.error().message});
  }
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  SpawnRequest request;
  request.program = start.program;
  int first = self->first_descriptor_;
  request.argv = {"bash", "--noprofile", "--norc", "-c", shell::main_program(first), "bash"};
  request.env = start.env.block();
  request.cwd = start.cwd;
  // What a client's EXIT trap prints is for the client. What "set -x" says about our own code is not.
  request.out = start.output;
  request.more = {{requests.get(), first + shell::kRequests},
                  {answers.get(), first + shell::kAnswers},
                  {null.get(), first + shell::kNull},
                  {start.output, first + shell::kOutput},
                  {wake.get(), first + shell::kWake}};
  request.credentials = start.credentials;
  auto pid = spawn(std::move(request));
  if (!pid) return std::unexpected(pid.error());
  self->pid_ = *pid;
  core.reaper.watch(*pid, [self](ExitStatus status) { self->on_exit(status); });
  core.tasks.spawn(read_answers(self));
  self->pending_.push_back(std::make_shared<Request>(core.executor));  // "started" is the first answer
  return self;
}

std::shared_ptr<Shell::Request> Shell::run(std::string_view code) {
  auto request = std::make_shared<Request>(core_.executor);
  request->behind = keepers_asked_;
  send('R', code, request);
  // Together with the command, so that no time passes between its end and the copy.
  make_keeper();
  return request;
}

void Shell::make_keeper() {
  auto request = std::make_shared<Request>(core_.executor);
  request->keeper = ++keepers_asked_;
  send('C', shell::keeper_program(first_descriptor_, request->keeper), request);
}

io::Task<std::optional<int>> Shell::control(std::string code) {
  auto request = std::make_shared<Request>(core_.executor);
  send('C', code, request);
  co_await request->changed.wait();
  co_return request->status;
}

void Shell::send(char kind, std::string_view code, std::shared_ptr<Request> request) {
  if (exit_) {
    request->shell_ended = true;
    request->changed.set();
    return;
  }
  pending_.push_back(std::move(request));
  unsent_ += shell::frame(kind, code);
  if (writing_) return;
  writing_ = true;
  core_.tasks.spawn(write_requests(shared_from_this()));
}

io::Task<> Shell::write_requests(std::shared_ptr<Shell> self) {
  while (!self->unsent_.empty() && !self->exit_) {
    ssize_t n = ::write(self->requests_.native_handle(), self->unsent_.data(), self->unsent_.size());
    if (n > 0) {
      self->unsent_.erase(0, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) break;  // the shell is gone; its end will be reported
    auto [error] =
        co_await self->requests_.async_wait(PipeEnd::wait_write, io::asio::as_tuple(io::asio::deferred));
    if (error) break;
  }
  self->unsent_.clear();
  self->writing_ = false;
}

io::Task<> Shell::read_answers(std::shared_ptr<Shell> self) {
  while (co_await io::wait_readable(self->answers_)) {
    if (!self->read_available()) break;
  }
  self->recovered_.set();
}

// False at the end.
bool Shell::read_available() {
  char buffer[4096];
  while (true) {
    ssize_t n = ::read(answers_.native_handle(), buffer, sizeof buffer);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    on_answers({buffer, static_cast<size_t>(n)});
  }
}

void Shell::on_answers(std::string_view bytes) {
  received_ += bytes;
  while (!received_.empty()) {
    if (state_size_) {
      if (received_.size() < *state_size_) return;
      state_ = std::move(received_);
      state_->resize(*state_size_);
      recovered_.set();
      received_.clear();
      return;
    }
    size_t end = received_.find('\n');
    if (end == received_.npos) return;
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    on_line(line);
  }
}

void Shell::on_line(std::string_view line) {
  char kind = line.empty() ? '\0' : line[0];
  std::string_view rest = line.substr(std::min<size_t>(1, line.size()));
  if (kind == 'S' && !pending_.empty()) {
    auto request = std::move(pending_.front());
    pending_.pop_front();
    request->status = parse_number<int>(rest).value_or(1);
    keepers_made_ = std::max(keepers_made_, request->keeper);
    request->changed.set();
  } else if (kind == 'F') {
    size_t blank = rest.find(' ');
    auto pid = parse_number<pid_t>(rest.substr(0, blank));
    auto number = blank == rest.npos ? std::nullopt : parse_number<uint64_t>(rest.substr(blank + 1));
    if (pid && number) on_keeper(*pid, *number);
  } else if (kind == 'D') {
    auto size = parse_number<size_t>(rest);
    if (size && *size <= kMaxState) state_size_ = *size;
  }
}

// Keepers come to this process as orphans and lead a group of their own. One that is neither a process any
// more nor like that is not signalled: its number may be somebody else's.
void Shell::on_keeper(pid_t pid, uint64_t number) {
  auto text = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  auto stat = text ? parse_proc_stat(*text) : std::nullopt;
  if (!stat || stat->group != pid) return;
  if (ended_ || number < keeper_number_) {
    ::kill(pid, SIGKILL);  // born too late, or overtaken by a younger one
    return;
  }
  kill_keeper();
  keeper_ = pid;
  keeper_number_ = number;
  core_.reaper.watch(pid, [weak = weak_from_this(), pid](ExitStatus) {
    auto self = weak.lock();
    if (self && self->keeper_ == pid) self->keeper_ = -1;
  });
  keeper_changed_.set();
}

void Shell::kill_keeper() {
  if (keeper_ <= 0) return;
  core_.reaper.forget(keeper_);
  ::kill(keeper_, SIGKILL);
  keeper_ = -1;
}

void Shell::on_exit(ExitStatus status) {
  read_available();  // what it said last counts
  exit_ = status;
  keeper_changed_.set();
  auto pending = std::move(pending_);
  pending_.clear();
  for (auto& request : pending) {
    request->shell_ended = true;
    request->changed.set();
  }
}

void Shell::kill_since(const Moment& since) {
  if (exit_) return;
  std::set<pid_t> victims = started_since(Processes::now(), pid_, since);
  victims.erase(keeper_);  // just born, it may still be a child of one of them
  ::kill(pid_, SIGKILL);
  // Whatever they fork meanwhile is found in the next round, by its parent or by the group it was born into.
  for (int round = 0; round < 4; ++round) {
    for (pid_t pid : victims) ::kill(pid, SIGKILL);
    Processes processes = Processes::now();
    std::set<pid_t> more;
    for (const auto& [pid, stat] : processes.list) {
      bool orphan = stat.group == pid_ && stat.parent == ::getpid() && pid != pid_ &&
                    since.before_start_of(pid, stat, processes.seen);
      bool known = victims.contains(pid) || pid == keeper_;
      if (!known && stat.state != 'Z' && (victims.contains(stat.parent) || orphan)) more.insert(pid);
    }
    if (more.empty()) return;
    victims.merge(more);
  }
}

void Shell::kill_all() {
  ended_ = true;
  kill_keeper();
  if (!exit_) ::kill(-pid_, SIGKILL);
}

// Returns when this keeper or a younger one has reported itself.
io::Task<> Shell::wait_for_keeper(uint64_t number) {
  while (keeper_number_ < number) {
    keeper_changed_.reset();
    co_await keeper_changed_.wait();
    if (exit_ && keepers_made_ < number) co_return;  // it will never be made
  }
}

// A command that is stopped at once may be ahead of the copy of what the command before it left.
io::Task<> Shell::wait_for_state_before(const Request& request) {
  if (exit_) co_return;
  co_await io::race(wait_for_keeper(request.behind), io::sleep_running(kKeeperDeadline));
}

io::Task<std::optional<std::string>> Shell::recover() {
  co_await io::race(wait_for_keeper(keepers_made_), io::sleep_running(kKeeperDeadline));
  // One line would do, but an older keeper that is being killed may still take one of them on its way.
  if (keeper_ <= 0 || ::write(wake_.get(), kWake.data(), kWake.size()) < 0) co_return std::nullopt;
  co_await io::race(recovered_.wait(), io::sleep_running(kRecoverDeadline));
  kill_keeper();
  co_return std::move(state_);
}

}  // namespace osb::execd
