#include "runtime/native/native_runtime.h"

#include <fcntl.h>
#include <signal.h>

#include "base/log.h"
#include "base/strings.h"
#include "launcher/bytes.h"
#include "runtime/native/entry_process.h"
#include "runtime/native/exit_status.h"
#include "runtime/native/isolation.h"
#include "runtime/native/limit_check.h"
#include "runtime/native/plan.h"
#include "runtime/native/rootless.h"
#include "sys/process.h"

namespace osb::runtime {
namespace {

using launcher::Verb;

constexpr auto kStartDeadline = std::chrono::seconds(20);
constexpr auto kConnectDeadline = std::chrono::seconds(10);
constexpr auto kDeathDeadline = std::chrono::seconds(1);  // its connection closed already
constexpr uint32_t kSocketBatch = 8;

std::unexpected<CreateFailure> failed(CreateFailure::Kind kind, Error error) {
  return std::unexpected(CreateFailure{kind, std::move(error)});
}

// An index that cannot be read says nothing about which images there are.
std::unexpected<CreateFailure> no_image(Error error) {
  using Kind = CreateFailure::Kind;
  return failed(error.code == Code::not_found ? Kind::image_not_found : Kind::step_failed, std::move(error));
}

// For messages: a program name may be as long as a request.
std::string shorten(std::string text) {
  constexpr size_t kMost = 4200;  // a path of the longest kind, and some words
  if (text.size() <= kMost) return text;
  text.resize(kMost);
  return text + "...";
}

// pid, start time and boot: together they name one process for ever.
std::string identity_of(const launcher::Started& started, const std::string& boot_id) {
  return std::to_string(started.pid) + " " + std::to_string(started.start_ticks) + " " + boot_id;
}

}  // namespace

struct NativeRuntime::Sandbox {
  Sandbox(std::string id_, const io::Executor& executor, Fd pidfd_)
      : id(std::move(id_)), pidfd(std::move(pidfd_)), ended(executor) {}
  std::string id;
  Fd pidfd;
  std::optional<ControlConnection> control;
  std::vector<Fd> sockets;  // unconnected, inside the sandbox's network namespace
  io::Event ended;
  End end;
  bool removed = false;
};

NativeRuntime::NativeRuntime(io::Executor executor, NativeSettings settings, Fd channel,
                             std::function<void()> on_launcher_lost)
    : executor_(executor),
      settings_(std::move(settings)),
      images_(settings_.images),
      launcher_(executor, std::move(channel), std::move(on_launcher_lost)),
      tasks_(executor),
      boot_id_(sys::boot_id().value_or("unknown")) {
  tasks_.spawn(launcher_.run());
}

NativeRuntime::~NativeRuntime() = default;

Task<> NativeRuntime::close() { co_await tasks_.close(); }

std::string NativeRuntime::socket_path(const std::string& id, const char* suffix) const {
  return settings_.images.state_dir + "/run/" + id + suffix;
}

Isolation NativeRuntime::isolation() const {
  return settings_.rootless ? rootless_isolation(RootlessFacts::read(settings_.rootless_abilities))
                            : native_isolation(settings_.cgroups);
}

Task<Result<void>> NativeRuntime::health() {
  // The launcher made its groups a moment ago, before it started this server. It is busy making things ahead
  // now, and whoever waits for the start should not wait for that.
  constexpr auto kFreshStart = std::chrono::seconds(1);
  if (std::chrono::steady_clock::now() - started_ < kFreshStart) co_return Result<void>();
  auto answered = co_await launcher_.call(Verb::health, "");
  if (!answered) co_return std::unexpected(std::move(answered.error()).in("no sandbox can be made"));
  co_return Result<void>();
}

std::expected<void, CreateFailure> NativeRuntime::check(const SandboxSpec& spec) const {
  using Kind = CreateFailure::Kind;
  if (auto image = images_.find(spec.image); !image) return no_image(std::move(image).error());
  auto limitable = [this](const sys::Controller& c) {
    return settings_.rootless || c.version != sys::Controller::Version::none;
  };
  auto refuse = [](const char* what) {
    return failed(Kind::bad_limit, Error{Code::unsupported, 0,
                                         std::string("resourceLimits.") + what +
                                             ": this host has no cgroup controller for it"});
  };
  if (spec.limits.cpu_millis && !limitable(settings_.cgroups.cpu)) return refuse("cpu");
  if (spec.limits.memory_bytes && !limitable(settings_.cgroups.memory)) return refuse("memory");
  if (spec.limits.pids && !limitable(settings_.cgroups.pids)) return refuse("pids");
  if (auto why = limit_obstacle(spec.limits, settings_.cgroups, settings_.rootless); !why.empty())
    return failed(Kind::bad_limit, Error{Code::unsupported, 0, std::move(why)});
  return {};
}

Task<Result<std::pair<NativeRuntime::SandboxPtr, std::string>>> NativeRuntime::start_processes(
    const SandboxSpec& spec, ImageRoot image) {
  Limits limits = spec.limits;
  bool can_limit_pids =
      settings_.rootless || settings_.cgroups.pids.version != sys::Controller::Version::none;
  if (!limits.pids && can_limit_pids) limits.pids = settings_.pids_limit;
  auto answer =
      CO_TRY(co_await launcher_.call(Verb::start, launcher::encode(make_plan(spec, image, limits))));
  auto started = CO_TRY(launcher::decode_started(answer.body));
  if (answer.descriptors.empty()) co_return fail(Code::internal, "the launcher sent no pidfd");
  auto sandbox = std::make_shared<Sandbox>(spec.id, executor_, std::move(answer.descriptors[0]));
  sandbox->control = CO_TRY(co_await ControlConnection::open(socket_path(spec.id, ".control")));
  co_return std::pair(sandbox, identity_of(started, boot_id_));
}

Task<std::expected<void, CreateFailure>> NativeRuntime::start_entry(SandboxPtr sandbox, EntryProcess entry) {
  using Kind = CreateFailure::Kind;
  ControlConnection& control = *sandbox->control;
  // execd says "waiting" first; the entry process may be sent before that arrives.
  auto sent = co_await control.start(std::move(entry));
  if (!sent) co_return failed(Kind::step_failed, std::move(sent).error().in("start execd"));
  while (true) {
    auto state = co_await io::with_deadline(kStartDeadline, "execd", control.next());
    if (!state) co_return failed(Kind::step_failed, std::move(state).error().in("start execd"));
    if (state->kind == ControlState::Kind::waiting) continue;
    if (state->kind == ControlState::Kind::running) co_return std::expected<void, CreateFailure>{};
    if (state->kind == ControlState::Kind::ended) {
      // So short-lived that its end overtook us: it did start.
      sandbox->end = describe_end(*state);
      sandbox->ended.set();
      co_return std::expected<void, CreateFailure>{};
    }
    bool plain = state->message.empty() || state->message.size() > state->path.size() + 200;
    std::string cause = plain ? errno_text(state->sys_errno) : state->message;
    co_return failed(Kind::bad_entrypoint,
                     Error{Code::invalid_argument, state->sys_errno, shorten(state->path) + ": " + cause});
  }
}

Task<std::expected<std::string, CreateFailure>> NativeRuntime::create(SandboxSpec spec) {
  using Kind = CreateFailure::Kind;
  auto image = images_.find(spec.image);
  if (!image) co_return no_image(std::move(image).error());
  EntryProcess process = entry_process(spec, image->config);
  auto started = co_await start_processes(spec, std::move(*image));
  if (!started) {
    (void)co_await destroy(spec.id);
    Kind kind = started.error().code == Code::exhausted ? Kind::overloaded : Kind::step_failed;
    co_return failed(kind, std::move(started).error());
  }
  auto [sandbox, identity] = std::move(*started);
  auto entry = co_await start_entry(sandbox, std::move(process));
  if (!entry) {
    (void)co_await destroy(spec.id);
    co_return std::unexpected(std::move(entry).error());
  }
  sandboxes_[spec.id] = sandbox;
  tasks_.spawn(watch(sandbox));
  co_return identity;
}

Task<Result<void>> NativeRuntime::destroy(std::string id) {
  auto found = sandboxes_.find(id);
  if (found != sandboxes_.end()) {
    found->second->removed = true;
    sandboxes_.erase(found);
  }
  CO_TRY(co_await launcher_.call(Verb::destroy, std::move(id)));
  co_return Result<void>{};
}

Task<Result<std::vector<std::string>>> NativeRuntime::list() {
  std::vector<std::string> ids;
  while (true) {
    auto answer = CO_TRY(co_await launcher_.call(Verb::list, ids.empty() ? std::string() : ids.back()));
    launcher::ByteReader in(answer.body);
    auto count = in.number<uint32_t>();
    for (uint32_t i = 0; i < count && !in.failed(); ++i) ids.push_back(in.string());
    if (in.failed()) co_return fail(Code::corrupt, "the launcher's list");
    if (count < launcher::kListPage) co_return ids;
  }
}

Task<std::expected<Adopted, End>> NativeRuntime::adopt(std::string id, std::string identity) {
  auto ended = [](End end) { return std::expected<Adopted, End>(std::unexpect, std::move(end)); };
  auto words = split(identity, ' ');
  auto pid = words.size() == 3 ? parse_number<int64_t>(words[0]) : std::nullopt;
  auto ticks = words.size() == 3 ? parse_number<uint64_t>(words[1]) : std::nullopt;
  if (!pid || !ticks) co_return ended({End::Kind::lost, 0, "its record cannot be read"});
  if (words[2] != boot_id_) co_return ended({End::Kind::host_restarted, 0, "the host was restarted"});
  launcher::ByteWriter body;
  body.string(id);
  body.number(*pid);
  body.number(*ticks);
  auto answer = co_await launcher_.call(Verb::adopt, body.take());
  if (!answer || answer->descriptors.empty()) co_return ended(co_await explain_death(id, -1));
  Adopted adopted{.paused = launcher::ByteReader(answer->body).number<uint8_t>() != 0};
  auto sandbox = std::make_shared<Sandbox>(id, executor_, std::move(answer->descriptors[0]));
  auto control = co_await io::with_deadline(kConnectDeadline, "execd",
                                            ControlConnection::open(socket_path(id, ".control")));
  if (!control) co_return ended(co_await explain_death(id, sandbox->pidfd.get()));
  sandbox->control = std::move(*control);
  sandboxes_[id] = sandbox;
  tasks_.spawn(watch(sandbox));
  co_return adopted;
}

Task<Result<void>> NativeRuntime::pause(std::string id) {
  CO_TRY(co_await launcher_.call(Verb::freeze, std::move(id)));
  co_return Result<void>{};
}

Task<Result<void>> NativeRuntime::resume(std::string id) {
  CO_TRY(co_await launcher_.call(Verb::thaw, std::move(id)));
  co_return Result<void>{};
}

Task<> NativeRuntime::watch(SandboxPtr sandbox) {
  if (!sandbox->ended.is_set()) {
    Result<ControlState> last = fail(Code::unavailable, "nothing heard");
    do {
      last = co_await sandbox->control->next();
    } while (last && last->kind != ControlState::Kind::ended && last->kind != ControlState::Kind::failed);
    // Of one that is being deleted nobody asks more.
    sandbox->end = sandbox->removed ? End{End::Kind::signalled, SIGKILL, "it was deleted"}
                                    : co_await explain(sandbox, std::move(last));
  }
  if (!sandbox->removed) {
    (void)co_await sandbox->control->acknowledge();
    // The files stay until the sandbox is deleted; no process does.
    (void)co_await launcher_.call(Verb::stop, sandbox->id);
  }
  sandbox->ended.set();
}

Task<End> NativeRuntime::explain(SandboxPtr sandbox, Result<ControlState> last) {
  if (!last) co_return co_await explain_death(sandbox->id, sandbox->pidfd.get());
  End end = describe_end(*last);
  bool killed = (end.kind == End::Kind::signalled && end.number == SIGKILL) ||
                (end.kind == End::Kind::exited && end.number == 128 + SIGKILL);
  if (!killed) co_return end;
  auto answer = co_await launcher_.call(Verb::ooms, sandbox->id);
  if (answer && launcher::ByteReader(answer->body).number<int64_t>() > 0) {
    end.kind = End::Kind::out_of_memory;
    end.detail = "the entry process was killed: the memory limit was reached";
  }
  co_return end;
}

// execd itself is gone without a word: the kernel may still know why.
Task<End> NativeRuntime::explain_death(std::string id, int pidfd) {
  if (pidfd >= 0) {
    io::asio::posix::stream_descriptor gone(executor_, ::fcntl(pidfd, F_DUPFD_CLOEXEC, 0));
    (void)co_await io::with_deadline(kDeathDeadline, "the sandbox's first process", io::wait_readable(gone));
  }
  auto answer = co_await launcher_.call(Verb::ooms, std::move(id));
  if (answer && launcher::ByteReader(answer->body).number<int64_t>() > 0) {
    co_return End{End::Kind::out_of_memory, SIGKILL, "the sandbox was killed: the memory limit was reached"};
  }
  co_return end_from_pidfd(pidfd);
}

Task<End> NativeRuntime::wait(std::string id) {
  auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) co_return End{End::Kind::lost, 0, "no such sandbox"};
  SandboxPtr sandbox = found->second;
  co_await sandbox->ended.wait();
  co_return sandbox->end;
}

Task<Result<Fd>> NativeRuntime::take_socket(SandboxPtr sandbox) {
  if (sandbox->sockets.empty()) {
    launcher::ByteWriter body;
    body.string(sandbox->id);
    body.number(kSocketBatch);
    auto answer = CO_TRY(co_await launcher_.call(Verb::sockets, body.take()));
    for (Fd& fd : answer.descriptors) sandbox->sockets.push_back(std::move(fd));
    if (sandbox->sockets.empty()) co_return fail(Code::internal, "the launcher sent no sockets");
  }
  Fd socket = std::move(sandbox->sockets.back());
  sandbox->sockets.pop_back();
  co_return socket;
}

Task<Result<io::Socket>> NativeRuntime::connect(std::string id, uint16_t port) {
  auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) co_return fail(Code::not_found, "sandbox " + id + " does not run");
  SandboxPtr sandbox = found->second;
  if (port == kExecdPort) {
    co_return co_await io::with_deadline(kConnectDeadline, "execd",
                                         io::connect_unix(socket_path(id, ".api")));
  }
  Fd socket = CO_TRY(co_await take_socket(sandbox));
  co_return co_await io::with_deadline(kConnectDeadline, "port " + std::to_string(port),
                                       io::connect_loopback(std::move(socket), port));
}

}  // namespace osb::runtime
