#pragma once

// For tests: a runtime that makes nothing. It keeps its sandboxes when a server goes away, so that recovery
// can be tested; connections into a sandbox end at a handler of the test. Every call first asks the engine
// whether it is there. Compiled into tests and test executables only.

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "http/server.h"
#include "runtime/runtime.h"
#include "testkit/memory_engine.h"

namespace osb::testkit {

using io::Task;
using runtime::Adoption;
using runtime::Created;
using runtime::CreateFailure;
using runtime::End;

class MemoryRuntime : public runtime::Runtime {
 public:
  using Failure = CreateFailure;
  using Sandbox = MemorySandbox;

  // An engine of its own.
  MemoryRuntime(io::Executor executor, http::Handler inside);
  MemoryRuntime(std::shared_ptr<MemoryEngine> engine, std::string name, std::string owner,
                http::Handler inside);
  ~MemoryRuntime() override;
  Task<> close() override;

  std::string_view name() const override { return name_; }
  const runtime::Capabilities& capabilities() const override { return abilities; }
  Task<Result<void>> health() override;
  Task<Created<runtime::PreparedPtr>> prepare(runtime::SandboxSpec spec) override;
  std::string preparing(const std::string&) const override { return preparing_what; }
  Task<Created<std::string>> start(runtime::PreparedPtr prepared, runtime::Claim claim) override;
  Task<Created<runtime::Warm>> warm(runtime::PreparedPtr prepared, std::string record) override;
  Task<Created<void>> claim(std::string handle, runtime::Claim claim,
                            std::optional<runtime::NetworkPolicy> network) override;
  Task<Adoption> adopt_warm(std::string handle, runtime::Warm warm) override;
  Task<Result<void>> destroy(std::string handle) override;
  Task<Result<std::vector<std::string>>> list() override;
  Task<Adoption> adopt(std::string handle, std::string identity) override;
  Task<Result<End>> wait(std::string handle) override;
  Task<Result<void>> settle(std::string handle) override;
  Task<Result<void>> pause(std::string handle) override;
  Task<Result<bool>> resume(std::string handle) override;
  void on_news(std::function<void(runtime::News)> heard) override { heard_ = std::move(heard); }
  Task<Result<bool>> is_paused(std::string handle) override;
  Task<Result<runtime::Recalled>> recall(std::string handle) override;
  Task<Result<void>> keep_record(std::string handle, std::string record) override;
  Task<Result<io::Stream>> connect(std::string handle, uint16_t port) override;
  Task<Result<runtime::Output>> logs(std::string handle) override;
  Task<Result<void>> capture(std::string handle, std::string snapshot) override;
  Task<Result<runtime::KeptSnapshot>> keep(std::string snapshot) override;
  Task<Result<void>> drop(std::string snapshot) override;
  Task<Result<std::vector<std::string>>> list_snapshots() override;
  Task<Result<std::vector<runtime::NamedVolume>>> list_volumes(std::string owner) override;
  Task<Result<void>> remove_volume(std::string owner, std::string name) override;
  Task<Result<std::optional<runtime::NetworkPolicy>>> network_of(std::string handle) override;
  std::string detour(const std::string&, uint16_t) const override { return own_detour; }
  std::optional<std::string> endpoint(const std::string&, uint16_t) const override { return own_endpoint; }

  // Those that wait for a claim: by their handle, for want of an id.
  size_t waiting() const;
  // The entry process ends.
  void end_of(const std::string& id, End end);
  // Somebody else does it.
  void set_paused_by_others(const std::string& id, bool paused);
  void have_trouble(const std::string& id, std::string what);

 private:
  using Entry = std::pair<const std::string, std::shared_ptr<Sandbox>>;

  std::string name_, owner_;
  std::shared_ptr<MemoryEngine> engine_;

 public:
  std::map<std::string, std::shared_ptr<Sandbox>>& sandboxes;
  Faults& faults;
  runtime::Capabilities abilities;
  // What was captured, by id: kept ones with what they are. Of this object only.
  struct Captured {
    runtime::KeptSnapshot what;
    bool is_kept = false;
  };
  std::map<std::string, Captured> snapshots;

  // Named volumes, by owner. Of this object only; creates make none.
  std::map<std::string, std::vector<runtime::NamedVolume>> volumes;

  // What single calls do.
  std::optional<Failure> next_failure, next_prepare_failure;
  io::Event hold;                                 // creations wait for it
  io::Event prepare_hold;                         // their first halves
  std::string preparing_what = {};                // what those say meanwhile
  io::Event destroy_hold, pause_hold, list_hold;  // the same; pause_hold for resume, too
  io::Event capture_hold, claim_hold;
  std::optional<Error> next_capture_failure, next_keep_failure;
  std::set<std::string> adopted, settled;  // ids
  std::optional<Error> unknown;            // what adopt() answers, and recall()
  bool fail_settle = false;
  bool fail_destroy = false;
  bool fail_pause = false;
  bool foreign_streams = false;  // connections are no sockets
  std::string own_detour;
  std::optional<std::string> own_endpoint;
  std::string trouble = {};  // what health() complains of
  int creates = 0, warms = 0, claims = 0, destroys = 0, connects = 0, adoptions = 0, recalls = 0;

 private:
  Task<Result<void>> answer();
  std::shared_ptr<Sandbox> find(const std::string& handle);
  Task<Result<void>> set_paused(std::string handle, bool paused);

  http::Server inside_;
  std::function<void(runtime::News)> heard_;
};

// Says what it was asked, and gives the logs of an execd.
Task<> answer_inside(http::Request& request, http::ResponseWriter& response);

}  // namespace osb::testkit
