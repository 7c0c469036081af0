#pragma once

// For unit tests: a runtime that makes nothing. It keeps its sandboxes when a server goes away, so that
// recovery can be tested; connections into a sandbox end at a handler of the test.

#include <sys/socket.h>

#include <map>
#include <memory>
#include <set>

#include "http/server.h"
#include "io/socket.h"
#include "runtime/runtime.h"

namespace osb::server {

class FakeRuntime : public runtime::Runtime {
 public:
  using Failure = runtime::CreateFailure;
  using End = runtime::End;

  struct Sandbox {
    explicit Sandbox(const io::Executor& executor) : ended(executor) {}
    runtime::SandboxSpec spec;
    std::string identity;
    io::Event ended;
    End end;
    bool paused = false;
  };

  FakeRuntime(io::Executor executor, http::Handler inside)
      : executor_(executor),
        hold(executor),
        destroy_hold(executor),
        pause_hold(executor),
        inside_(executor, std::move(inside)) {
    hold.set();
    destroy_hold.set();
    pause_hold.set();
  }

  std::string_view name() const override { return "fake"; }

  std::expected<void, Failure> check(const runtime::SandboxSpec& spec) const override {
    if (spec.image == "missing") {
      return std::unexpected(
          Failure{Failure::Kind::image_not_found, {Code::not_found, 0, "no image 'missing'"}});
    }
    return {};
  }

  io::Task<std::expected<std::string, Failure>> create(runtime::SandboxSpec spec) override {
    ++creates;
    co_await hold.wait();
    if (next_failure) co_return std::unexpected(*std::exchange(next_failure, std::nullopt));
    auto sandbox = std::make_shared<Sandbox>(executor_);
    sandbox->identity = "identity of " + spec.id;
    sandbox->spec = std::move(spec);
    sandboxes[sandbox->spec.id] = sandbox;
    co_return sandbox->identity;
  }

  io::Task<Result<void>> health() override {
    if (!trouble.empty()) co_return fail(Code::unavailable, trouble);
    co_return Result<void>();
  }

  io::Task<Result<void>> destroy(std::string id) override {
    ++destroys;
    co_await destroy_hold.wait();
    if (fail_destroy) co_return fail(Code::internal, "cannot destroy");
    if (auto found = sandboxes.find(id); found != sandboxes.end()) {
      end_of(id, {End::Kind::signalled, 9, ""});
      sandboxes.erase(found);
    }
    co_return Result<void>();
  }

  io::Task<Result<std::vector<std::string>>> list() override {
    std::vector<std::string> ids;
    for (const auto& [id, sandbox] : sandboxes) ids.push_back(id);
    co_return ids;
  }

  io::Task<std::expected<runtime::Adopted, End>> adopt(std::string id, std::string identity) override {
    auto found = sandboxes.find(id);
    if (found == sandboxes.end() || found->second->identity != identity)
      co_return std::unexpected(End{End::Kind::lost, 0, ""});
    adopted.insert(id);
    if (found->second->ended.is_set()) co_return std::unexpected(found->second->end);
    co_return runtime::Adopted{.paused = found->second->paused};
  }

  io::Task<Result<void>> pause(std::string id) override { return set_paused(std::move(id), true); }
  io::Task<Result<void>> resume(std::string id) override { return set_paused(std::move(id), false); }

  io::Task<Result<void>> set_paused(std::string id, bool paused) {
    co_await pause_hold.wait();
    if (cannot_pause) co_return fail(Code::unsupported, "no cgroup");
    if (fail_pause) co_return fail(Code::timeout, "a process does not stop");
    auto found = sandboxes.find(id);
    if (found == sandboxes.end() || found->second->ended.is_set()) co_return fail(Code::not_found, "gone");
    found->second->paused = paused;
    co_return Result<void>();
  }

  io::Task<End> wait(std::string id) override {
    auto found = sandboxes.find(id);
    if (found == sandboxes.end()) co_return End{End::Kind::lost, 0, ""};
    auto sandbox = found->second;
    co_await sandbox->ended.wait();
    co_return sandbox->end;
  }

  io::Task<Result<io::Socket>> connect(std::string id, uint16_t port) override {
    ++connects;
    if (!sandboxes.contains(id)) co_return fail(Code::not_found, "unknown");
    if (port == 9) co_return fail(Code::unavailable, "nothing listens");
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) co_return fail_errno("socketpair");
    Fd ours(pair[0]), theirs(pair[1]);
    inside_.adopt(CO_TRY(io::adopt(executor_, std::move(theirs))));
    co_return io::adopt(executor_, std::move(ours));
  }

  // The entry process ends.
  void end_of(const std::string& id, End end) {
    auto& sandbox = *sandboxes.at(id);
    if (sandbox.ended.is_set()) return;
    sandbox.end = std::move(end);
    sandbox.ended.set();
  }

  // Closes what serves the connections into sandboxes.
  io::Task<> close() { co_await inside_.close(std::chrono::seconds(0)); }

 private:
  io::Executor executor_;

 public:
  std::map<std::string, std::shared_ptr<Sandbox>> sandboxes;
  std::set<std::string> adopted;
  std::optional<Failure> next_failure;
  io::Event hold;          // creations wait for it
  io::Event destroy_hold;  // removals wait for it
  io::Event pause_hold;    // pause and resume wait for it
  bool fail_destroy = false;
  std::string trouble = {};  // what health() complains of
  bool fail_pause = false;
  bool cannot_pause = false;
  int creates = 0, destroys = 0, connects = 0;

 private:
  http::Server inside_;
};

}  // namespace osb::server
