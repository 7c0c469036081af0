#include "testkit/memory_runtime.h"

#include <sys/socket.h>

#include <algorithm>

namespace osb::testkit {
namespace {

using runtime::Ability;

constexpr auto kLookAgain = std::chrono::milliseconds(20);

struct MemoryPrepared : runtime::Prepared {
  runtime::SandboxSpec spec;
};

runtime::Capabilities everything() {
  runtime::Capabilities can;
  for (Ability* ability : {&can.secure_access, &can.cpu, &can.memory, &can.pids, &can.disk, &can.io_read,
                           &can.io_write, &can.open_files, &can.pause, &can.snapshots, &can.pools})
    *ability = Ability::can();
  can.platforms = {"linux/amd64"};
  return can;
}

// A socket that does not say that it is one.
class HiddenSocket : public io::ForeignStream {
 public:
  explicit HiddenSocket(io::Socket socket) : socket_(std::move(socket)) {}
  Task<Result<size_t>> read_some(std::span<char> into) override { return io::read_some(socket_, into); }
  Task<Result<void>> write_all(std::string_view bytes) override { return io::write_all(socket_, bytes); }
  void shutdown_send() override {
    boost::system::error_code ignored;
    socket_.shutdown(io::Socket::shutdown_send, ignored);
  }

 private:
  io::Socket socket_;
};

// One that a test put there itself may have none.
const std::string& handle_of(const std::pair<const std::string, std::shared_ptr<MemorySandbox>>& entry) {
  return entry.second->spec.handle.empty() ? entry.first : entry.second->spec.handle;
}

}  // namespace

MemoryRuntime::MemoryRuntime(io::Executor executor, http::Handler inside)
    : MemoryRuntime(std::make_shared<MemoryEngine>(executor), "fake", "", std::move(inside)) {}

MemoryRuntime::MemoryRuntime(std::shared_ptr<MemoryEngine> engine, std::string name, std::string owner,
                             http::Handler inside)
    : name_(std::move(name)),
      owner_(std::move(owner)),
      engine_(std::move(engine)),
      sandboxes(engine_->sandboxes),
      faults(engine_->faults),
      abilities(everything()),
      hold(engine_->executor()),
      prepare_hold(engine_->executor()),
      destroy_hold(engine_->executor()),
      pause_hold(engine_->executor()),
      list_hold(engine_->executor()),
      capture_hold(engine_->executor()),
      claim_hold(engine_->executor()),
      inside_(engine_->executor(), std::move(inside)) {
  for (io::Event* event :
       {&hold, &prepare_hold, &destroy_hold, &pause_hold, &list_hold, &capture_hold, &claim_hold})
    event->set();
}

MemoryRuntime::~MemoryRuntime() = default;

Task<> MemoryRuntime::close() { co_await inside_.close(std::chrono::seconds(0)); }

// Every call begins with this.
Task<Result<void>> MemoryRuntime::answer() {
  const Faults& now = engine_->look();
  if (now.slow > now.slow.zero()) co_await io::sleep_for(now.slow);
  if (engine_->look().away) co_return fail(Code::unavailable, "the engine is away");
  co_return Result<void>();
}

std::shared_ptr<MemorySandbox> MemoryRuntime::find(const std::string& handle) {
  auto found = std::ranges::find_if(sandboxes, [&](const auto& entry) {
    return handle_of(entry) == handle && entry.second->owner == owner_;
  });
  return found == sandboxes.end() ? nullptr : found->second;
}

Task<Result<void>> MemoryRuntime::health() {
  if (!trouble.empty()) co_return fail(Code::unavailable, trouble);
  co_return co_await answer();
}

Task<Created<runtime::PreparedPtr>> MemoryRuntime::prepare(runtime::SandboxSpec spec) {
  if (auto there = co_await answer(); !there)
    co_return std::unexpected(Failure{Failure::Kind::unavailable, std::move(there.error())});
  if (spec.image.reference == "missing") {
    co_return std::unexpected(
        Failure{Failure::Kind::image_not_found, {Code::not_found, 0, "no image 'missing'"}});
  }
  co_await prepare_hold.wait();
  if (next_prepare_failure) co_return std::unexpected(*std::exchange(next_prepare_failure, std::nullopt));
  auto prepared = std::make_unique<MemoryPrepared>();
  prepared->spec = std::move(spec);
  co_return prepared;
}

Task<Created<std::string>> MemoryRuntime::start(runtime::PreparedPtr prepared, runtime::Claim claim) {
  ++creates;
  co_await hold.wait();
  if (next_failure) co_return std::unexpected(*std::exchange(next_failure, std::nullopt));
  if (auto there = co_await answer(); !there)
    co_return std::unexpected(Failure{Failure::Kind::unavailable, std::move(there.error())});
  auto sandbox = std::make_shared<Sandbox>(engine_->executor());
  sandbox->spec = std::move(static_cast<MemoryPrepared&>(*prepared).spec);
  sandbox->claim = std::move(claim);
  sandbox->owner = owner_;
  sandbox->identity = "identity of " + sandbox->spec.handle;
  sandboxes[sandbox->claim.id] = sandbox;
  engine_->save();
  co_return sandbox->identity;
}

Task<Created<runtime::Warm>> MemoryRuntime::warm(runtime::PreparedPtr prepared, std::string record) {
  ++warms;
  const std::string handle = static_cast<MemoryPrepared&>(*prepared).spec.handle;
  auto identity = co_await start(std::move(prepared),
                                 {.id = handle, .entrypoint = {}, .env = {}, .record = std::move(record)});
  --creates;
  if (!identity) co_return std::unexpected(std::move(identity.error()));
  co_return runtime::Warm{.identity = std::move(*identity), .shape = "shape"};
}

Task<Created<void>> MemoryRuntime::claim(std::string handle, runtime::Claim claim,
                                         std::optional<runtime::NetworkPolicy> network) {
  ++claims;
  co_await claim_hold.wait();
  if (next_failure) co_return std::unexpected(*std::exchange(next_failure, std::nullopt));
  if (auto there = co_await answer(); !there)
    co_return std::unexpected(Failure{Failure::Kind::unavailable, std::move(there.error())});
  auto sandbox = find(handle);
  if (!sandbox || sandbox->ended.is_set() || sandbox->claim.id != handle)
    co_return std::unexpected(Failure{Failure::Kind::step_failed, {Code::not_found, 0, "it waits no more"}});
  sandboxes.erase(handle);
  sandbox->claim = std::move(claim);
  sandbox->spec.network = std::move(network);
  sandboxes[sandbox->claim.id] = sandbox;
  engine_->save();
  co_return Created<void>();
}

Task<Adoption> MemoryRuntime::adopt_warm(std::string handle, runtime::Warm warm) {
  Adoption found = co_await adopt(handle, warm.identity);
  auto sandbox = find(handle);
  bool started = sandbox && sandbox->claim.id != handle;
  if (found.kind == Adoption::Kind::adopted && started)
    co_return Adoption{.kind = Adoption::Kind::ended, .end = {End::Kind::lost, 0, "it was started"}};
  co_return found;
}

size_t MemoryRuntime::waiting() const {
  return static_cast<size_t>(std::ranges::count_if(
      sandboxes, [](const auto& entry) { return entry.second->claim.id == entry.second->spec.handle; }));
}

Task<Result<void>> MemoryRuntime::destroy(std::string handle) {
  ++destroys;
  co_await destroy_hold.wait();
  if (fail_destroy) co_return fail(Code::internal, "cannot destroy");
  CO_TRY(co_await answer());
  auto sandbox = find(handle);
  if (!sandbox || faults.keeps_destroyed) co_return Result<void>();
  std::erase_if(sandboxes, [&](const Entry& entry) { return entry.second == sandbox; });
  if (!sandbox->ended.is_set()) {
    sandbox->end = {End::Kind::signalled, 9, ""};
    sandbox->ended.set();
  }
  engine_->save();
  co_return Result<void>();
}

Task<Result<std::vector<std::string>>> MemoryRuntime::list() {
  CO_TRY(co_await answer());
  co_await list_hold.wait();
  std::vector<std::string> handles;
  for (const auto& entry : sandboxes) {
    if (entry.second->owner == owner_) handles.push_back(handle_of(entry));
  }
  if (faults.names_others) handles.emplace_back("00000000-0000-4000-8000-000000000000");
  co_return handles;
}

Task<Adoption> MemoryRuntime::adopt(std::string handle, std::string identity) {
  ++adoptions;
  if (unknown) co_return Adoption{.error = *unknown};
  if (auto there = co_await answer(); !there) co_return Adoption{.error = std::move(there.error())};
  auto sandbox = find(handle);
  if (!sandbox || sandbox->identity != identity)
    co_return Adoption{.kind = Adoption::Kind::ended, .end = {End::Kind::lost, 0, ""}};
  for (const auto& [id, one] : sandboxes) {
    if (one == sandbox) adopted.insert(id);
  }
  co_return Adoption{.kind = Adoption::Kind::adopted, .paused = sandbox->paused};
}

Task<Result<End>> MemoryRuntime::wait(std::string handle) {
  auto sandbox = find(handle);
  if (!sandbox) co_return fail(Code::not_found, "unknown");
  while (!sandbox->ended.is_set()) {
    const Faults& now = engine_->look();
    if (now.away) co_return fail(Code::unavailable, "the engine is away");
    if (now.lies_about_ends) co_return fail(Code::not_found, "no such sandbox, says the engine");
    co_await io::race(sandbox->ended.wait(), io::sleep_for(kLookAgain));
  }
  co_return sandbox->end;
}

Task<Result<void>> MemoryRuntime::settle(std::string handle) {
  if (fail_settle) co_return fail(Code::unavailable, "cannot settle");
  CO_TRY(co_await answer());
  auto sandbox = find(handle);
  for (const auto& [id, one] : sandboxes) {
    if (one == sandbox) settled.insert(id);
  }
  co_return Result<void>();
}

Task<Result<void>> MemoryRuntime::set_paused(std::string handle, bool paused) {
  co_await pause_hold.wait();
  CO_TRY(co_await answer());
  if (fail_pause) co_return fail(Code::timeout, "a process does not stop");
  auto sandbox = find(handle);
  if (!sandbox || sandbox->ended.is_set()) co_return fail(Code::not_found, "gone");
  sandbox->paused = paused;
  engine_->save();
  co_return Result<void>();
}

Task<Result<void>> MemoryRuntime::pause(std::string handle) { return set_paused(std::move(handle), true); }

Task<Result<bool>> MemoryRuntime::resume(std::string handle) {
  auto sandbox = find(handle);
  bool was = sandbox && sandbox->paused;
  CO_TRY(co_await set_paused(std::move(handle), false));
  co_return was;
}

Task<Result<bool>> MemoryRuntime::is_paused(std::string handle) {
  CO_TRY(co_await answer());
  auto sandbox = find(handle);
  if (!sandbox || sandbox->ended.is_set()) co_return fail(Code::not_found, "gone");
  co_return sandbox->paused;
}

void MemoryRuntime::set_paused_by_others(const std::string& id, bool paused) {
  sandboxes.at(id)->paused = paused;
  engine_->save();
  if (heard_) heard_({.handle = sandboxes.at(id)->spec.handle});
}

void MemoryRuntime::have_trouble(const std::string& id, std::string what) {
  if (heard_) heard_({.handle = sandboxes.at(id)->spec.handle, .trouble = std::move(what)});
}

Task<Result<runtime::Recalled>> MemoryRuntime::recall(std::string handle) {
  ++recalls;
  CO_TRY(co_await answer());
  if (unknown) co_return std::unexpected(*unknown);
  auto sandbox = find(handle);
  if (!sandbox) co_return fail(Code::not_found, "unknown");
  co_return runtime::Recalled{sandbox->claim.record, sandbox->identity};
}

Task<Result<void>> MemoryRuntime::keep_record(std::string handle, std::string record) {
  CO_TRY(co_await answer());
  auto sandbox = find(handle);
  if (!sandbox) co_return fail(Code::not_found, "unknown");
  sandbox->claim.record = std::move(record);
  engine_->save();
  co_return Result<void>();
}

Task<Result<io::Stream>> MemoryRuntime::connect(std::string handle, uint16_t port) {
  ++connects;
  if (auto there = co_await answer(); !there) co_return fail(Code::not_found, there.error().message);
  if (!find(handle)) co_return fail(Code::not_found, "unknown");
  if (port == 9) co_return fail(Code::unavailable, "nothing listens");
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) co_return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  inside_.adopt(CO_TRY(io::adopt(engine_->executor(), std::move(theirs))));
  io::Socket socket = CO_TRY(io::adopt(engine_->executor(), std::move(ours)));
  if (foreign_streams) co_return io::Stream(std::make_unique<HiddenSocket>(std::move(socket)));
  co_return io::Stream(std::move(socket));
}

Task<Result<runtime::Output>> MemoryRuntime::logs(std::string handle) {
  CO_TRY(co_await answer());
  if (!find(handle)) co_return fail(Code::not_found, "unknown");
  co_return runtime::Output{"2026-01-02T03:04:05Z it says so\n", false};
}

Task<Result<void>> MemoryRuntime::capture(std::string handle, std::string snapshot) {
  co_await capture_hold.wait();
  CO_TRY(co_await answer());
  if (next_capture_failure) co_return std::unexpected(*std::exchange(next_capture_failure, std::nullopt));
  auto sandbox = find(handle);
  if (!sandbox) co_return fail(Code::not_found, "unknown");
  runtime::KeptSnapshot what{.image_id = sandbox->spec.image.id, .layers = {{"root", "of-" + snapshot}}};
  const auto& below = sandbox->spec.image.layers;
  what.layers.insert(what.layers.end(), below.begin(), below.end());
  what.bytes = 7;
  what.record = sandbox->claim.record;
  snapshots[snapshot] = {std::move(what), false};
  co_return Result<void>();
}

Task<Result<runtime::KeptSnapshot>> MemoryRuntime::keep(std::string snapshot) {
  CO_TRY(co_await answer());
  if (next_keep_failure) co_return std::unexpected(*std::exchange(next_keep_failure, std::nullopt));
  auto found = snapshots.find(snapshot);
  if (found == snapshots.end()) co_return fail(Code::not_found, "no such snapshot");
  found->second.is_kept = true;
  co_return found->second.what;
}

Task<Result<std::optional<runtime::NetworkPolicy>>> MemoryRuntime::network_of(std::string handle) {
  CO_TRY(co_await answer());
  auto sandbox = find(handle);
  if (!sandbox) co_return fail(Code::unavailable, "unknown");
  // As a service that has it switched off: nobody is there to be asked.
  if (!abilities.network_policy) co_return std::optional<runtime::NetworkPolicy>();
  co_return sandbox->spec.network;
}

Task<Result<std::vector<runtime::NamedVolume>>> MemoryRuntime::list_volumes(std::string owner) {
  CO_TRY(co_await answer());
  co_return volumes[owner];
}

Task<Result<void>> MemoryRuntime::remove_volume(std::string owner, std::string name) {
  CO_TRY(co_await answer());
  auto& all = volumes[owner];
  auto found = std::ranges::find(all, name, &runtime::NamedVolume::name);
  if (found == all.end()) co_return fail(Code::not_found, "there is no volume of this name");
  if (found->users > 0) co_return fail(Code::wrong_state, "a sandbox uses it");
  all.erase(found);
  co_return Result<void>();
}

Task<Result<void>> MemoryRuntime::drop(std::string snapshot) {
  CO_TRY(co_await answer());
  snapshots.erase(snapshot);
  co_return Result<void>();
}

Task<Result<std::vector<std::string>>> MemoryRuntime::list_snapshots() {
  CO_TRY(co_await answer());
  std::vector<std::string> ids;
  for (const auto& [id, captured] : snapshots) ids.push_back(id);
  co_return ids;
}

void MemoryRuntime::end_of(const std::string& id, End end) {
  auto& sandbox = *sandboxes.at(id);
  if (sandbox.ended.is_set()) return;
  sandbox.end = std::move(end);
  sandbox.ended.set();
}

Task<> answer_inside(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await http::read_all(*request.body, 1 << 20);
  std::string seen = request.head.method + " " + request.head.target + "\n" + body.value_or("(broken)");
  std::ignore = co_await response.send(200, {{"Content-Type", "text/plain"}}, std::move(seen));
}

}  // namespace osb::testkit
