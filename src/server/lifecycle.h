#pragma once

// The life of sandboxes: create, pause, resume, end, delete, expire, and recovery after a restart.
//
// The truth is in the store and in the runtime; nothing here has to survive. A row is written before the
// runtime makes anything and goes after the runtime has removed everything; a row in state Stopping is one
// whose removal has begun and will be finished, by this process or the next. Changes of one sandbox come one
// after the other; work that a client started goes on when the client goes away. Belongs to one loop.

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "api/changes.h"
#include "api/create_rules.h"
#include "base/clock.h"
#include "io/task.h"
#include "runtime/runtime.h"
#include "server/keyed_lock.h"
#include "store/store.h"

namespace osb::server {

using io::Task;

class Lifecycle {
 public:
  Lifecycle(io::Executor executor, store::Store& store, runtime::Runtime& runtime,
            const Clock& clock = Clock::system());
  Lifecycle(const Lifecycle&) = delete;

  // Called with the id of a sandbox that no longer runs, before its end is visible.
  void on_end(std::function<void(const std::string&)> callback) { on_end_ = std::move(callback); }

  // Compares rows with what the runtime has: adopts what matches, finishes removals, makes rows again for
  // what runs without one. Comes first.
  Task<Result<void>> recover();
  // Starts the expiry timer.
  void start();
  // Stores the ends that are known, then ends the timer, the watchers and unfinished work; the next process's
  // recovery picks that up.
  Task<> close();

  Task<api::ApiResult<store::Sandbox>> create(api::CreatePlan plan);
  api::ApiResult<store::SandboxPtr> get(std::string_view id);
  // Success also for a caller who came while another one's removal was under way.
  Task<api::ApiResult<>> remove(std::string id);
  // Both are done when they return. Expiry goes on meanwhile; limits on what the sandbox's programs do not.
  Task<api::ApiResult<>> pause(std::string id);
  Task<api::ApiResult<>> resume(std::string id);
  // Why nobody can say now what the sandbox does; nothing when that is known.
  const Error* unreachable(const std::string& id) const;
  // How long the sandbox has been paused since this server knows it.
  io::Duration stopped_time(const std::string& id) const;
  api::ApiResult<store::Sandbox> patch_metadata(const std::string& id, const api::MetadataPatch& patch);
  api::ApiResult<WallTime> renew(const std::string& id, WallTime expires);

  // One round of the expiry timer: starts the removal of what is due.
  Result<void> expire_due();
  // Removals by expiry under way, those waiting for their next attempt included.
  size_t expiring() const { return expiring_.size(); }

 private:
  struct Job;
  struct Recovery;

  Task<> create_job(std::shared_ptr<Job> job, api::CreatePlan plan);
  Task<api::ApiResult<store::Sandbox>> create_locked(store::Sandbox row, api::CreatePlan plan);
  Task<> pause_job(std::shared_ptr<Job> job, std::string id);
  Task<> resume_job(std::shared_ptr<Job> job, std::string id);
  Task<api::ApiResult<>> pause_locked(std::string id);
  Task<api::ApiResult<>> resume_locked(std::string id);
  Task<> note_slow(std::string id, store::Status status, std::shared_ptr<bool> done);
  void mark_paused(const std::string& id);
  void mark_resumed(const std::string& id);
  Result<void> store_change(const std::string& id, store::Status status, std::string_view event);
  void forget(const std::string& id);
  Task<> remove_job(std::shared_ptr<Job> job, std::string id);
  Task<Result<void>> remove_locked(std::string id, std::string_view reason);
  void note_removal(const std::string& id, std::string_view reason);  // its row goes, its events stay
  static void keep_trying(const std::string& id, const Result<void>& noted);
  Task<> abandon(store::Sandbox row);
  // Until the sandbox has ended and that is stored.
  Task<> watch(std::string id, std::string handle);
  Task<Result<void>> store_end_locked(std::string id, runtime::End end);
  Task<> drain();
  Task<> write_record(std::string id);
  Result<void> store_running(const store::Sandbox& row);
  Result<void> store_end(const std::string& id, const runtime::End& end);
  api::ApiResult<store::SandboxPtr> find_living(std::string_view id);

  Task<> expiry_loop();
  // Removes until it is done; `reason` "" for what is due, as long as it is.
  enum class First { now, after_a_while };
  void keep_removing(const std::string& id, std::string reason, First first);
  Task<> removal_job(std::string id, std::string reason);
  Task<Result<void>> expire_locked(std::string id);
  size_t busy_removals() const;

  Task<> recover_some(std::shared_ptr<Recovery> recovery);
  Task<> recover_row(store::Sandbox row);
  Task<> recover_stranger(std::string handle);
  Result<void> insert_again(const store::Sandbox& row);
  Task<Result<void>> adopt_row(store::Sandbox row);
  Task<> adopt_later(std::string id);
  Task<Result<void>> reconcile_pause(store::Sandbox row, bool paused);

  io::Executor executor_;
  store::Store& store_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  std::function<void(const std::string&)> on_end_ = [](const std::string&) {};
  KeyedLock locks_;
  // Removals under way, and when their latest attempt began; one that waits for its next has no time.
  std::map<std::string, std::optional<std::chrono::steady_clock::time_point>> expiring_;
  std::map<std::string, Error> unreachable_;  // by id, with the cause
  size_t ending_ = 0;                         // ends that are known and not stored yet
  io::Event ends_stored_;
  // Of sandboxes that were paused at least once.
  struct Stops {
    io::Duration before{};
    std::optional<std::chrono::steady_clock::time_point> since{};
  };
  std::unordered_map<std::string, Stops> stops_;
  io::asio::steady_timer expiry_timer_;
  WallTime next_round_ = WallTime::max();
  WallTime next_prune_ = WallTime::min();
  uint64_t removals_ = 0;
  io::TaskGroup tasks_;
};

}  // namespace osb::server
