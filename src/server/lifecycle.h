#pragma once

// The life of sandboxes: create, pause, resume, end, delete, expire, and recovery after a restart.
//
// The truth is in the store and in the runtime; nothing here has to survive. A row is written before the
// runtime makes anything and goes after the runtime has removed everything; a row in state Stopping is one
// whose removal has begun and will be finished, by this process or the next. Changes of one sandbox come one
// after the other; work that a client started goes on when the client goes away. Belongs to one loop.
//
// Speaks the domain (src/sandbox), not a wire: requests and sandboxes as values, failures without statuses.
// Which state allows which verb is one table, sandbox/transitions.h; each verb has a file of its own. Whoever
// asks is a Principal, and a sandbox outside its scope does not exist.

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "io/task.h"
#include "runtime/runtimes.h"
#include "sandbox/create_request.h"
#include "sandbox/failure.h"
#include "sandbox/labels.h"
#include "sandbox/pool.h"
#include "sandbox/transitions.h"
#include "server/keyed_lock.h"
#include "server/stopped_times.h"
#include "server/uses.h"
#include "store/repository.h"

namespace osb::server {

using io::Task;
using sandbox::Outcome;
using sandbox::Principal;
using sandbox::Scope;

class Lifecycle {
 public:
  Lifecycle(io::Executor executor, store::Repository& store, runtime::Runtimes& runtimes,
            const Clock& clock = Clock::system());
  Lifecycle(const Lifecycle&) = delete;

  // Called with the id of a sandbox that no longer runs, before its end is visible.
  void on_end(std::function<void(const std::string&)> callback) { on_end_ = std::move(callback); }

  // Compares rows with what the runtimes have: adopts what matches, finishes removals, makes rows again for
  // what runs without one. Comes first. What a runtime that is away has is recovered when it is back.
  Task<> recover();
  // Starts the timers of expiry and of idle sandboxes.
  void start();
  // Stores the ends that are known, then ends the timer, the watchers and unfinished work; the next process's
  // recovery picks that up.
  Task<> close();

  // One whose image has to come first may be Pending when this returns: nobody waits longer than this.
  static constexpr io::Duration kHeld = std::chrono::seconds(25);
  Task<Outcome<sandbox::Sandbox>> create(Principal who, sandbox::CreateRequest request);
  // One that waits in a pool becomes the caller's sandbox. `notes` are events of it. See lifecycle_claim.cc.
  // What is left of the member: nothing, it is a sandbox; all of it; a thing to be removed, because of the
  // request or because it had ended.
  enum class Left { taken, untouched, spoilt, dead };
  struct Claimed {
    Outcome<sandbox::Sandbox> made;
    Left left = Left::taken;
  };
  // `settled` is called when it is over, also when nobody waits for that any more.
  Task<Claimed> claim(Principal who, sandbox::CreateRequest request, sandbox::PoolMember member,
                      std::vector<std::string> notes, std::function<void(Left)> settled);
  void hold_creates_for(io::Duration limit) { held_ = limit; }
  // So long after its creation every sandbox that is made or renewed from now on ends.
  void live_at_most(std::chrono::seconds limit) { longest_life_ = limit; }
  // Until a sandbox whose creation was announced is Pending no more, or the time is up.
  Task<> wait_started(std::string id, io::Duration limit);
  Task<Outcome<sandbox::SandboxPtr>> get(Principal who, std::string id);
  // Success also for a caller who came while another one's removal was under way.
  Task<Outcome<>> remove(Principal who, std::string id);
  // Both are done when they return. Expiry goes on meanwhile; limits on what the sandbox's programs do not.
  Task<Outcome<>> pause(Principal who, std::string id);
  Task<Outcome<>> resume(Principal who, std::string id);
  Task<Outcome<sandbox::Sandbox>> patch_metadata(Principal who, std::string id, sandbox::MetadataPatch patch);
  Task<Outcome<WallTime>> renew(Principal who, std::string id, WallTime expires);
  // Because it was used: it lives for so long from now on, or as long as it would have, whichever is more.
  Task<Outcome<>> extend(std::string id, std::chrono::seconds by);
  // One that can be talked to now, and for as long as the use is held: it wakes one that was paused because
  // nobody used it, and keeps it awake.
  struct Reached {
    sandbox::SandboxPtr row;
    Uses::Use use;
  };
  Task<Outcome<Reached>> reach(Principal who, std::string id);
  // The same when it is awake and all that is at hand, which is so for most requests through the proxy;
  // nothing says nothing: ask reach().
  std::optional<Reached> reach_now(const Principal& who, const std::string& id);
  // Why nobody can say now what the sandbox does; nothing when that is known.
  const Error* unreachable(const std::string& id) const;
  // Keeps others from changing the sandbox: pausing, resuming, removing it.
  Task<KeyedLock::Guard> hold(std::string id) { return locks_.lock(std::move(id)); }
  // A fresh sandbox in the place of this one, with its id, that begins over `base`: its files are as they
  // were then, its processes are new.
  Task<Outcome<sandbox::Sandbox>> roll_back(Principal who, std::string id, sandbox::CreateRequest request);
  // How long the sandbox has been paused since this server knows it.
  io::Duration stopped_time(const std::string& id) const { return stops_.of(id); }

  // The wall clock was set: what is due now is looked at now.
  void clock_was_set() { expiry_timer_.cancel(); }
  // One round of the expiry timer: starts the removal of what is due.
  Task<Result<void>> expire_due();
  // Removals by expiry under way, those waiting for their next attempt included.
  size_t expiring() const { return expiring_.size(); }

 private:
  struct Job;
  struct Recovery;
  struct Preparing;
  struct Claiming;

  // Reading: nothing outside the scope exists, and nothing that is being removed can be changed.
  Task<Outcome<sandbox::SandboxPtr>> find(Scope scope, std::string id);
  Task<Outcome<sandbox::SandboxPtr>> find_living(Scope scope, std::string id);

  Task<> roll_back_job(std::shared_ptr<Job> job, Scope scope, std::string id, sandbox::CreateRequest request);
  Task<Outcome<sandbox::Sandbox>> roll_back_locked(sandbox::Sandbox row, sandbox::CreateRequest request);
  Task<> create_job(std::shared_ptr<Job> job, Principal who, sandbox::CreateRequest request);
  Task<> prepare_job(std::shared_ptr<Preparing> preparing, runtime::Runtime& runtime,
                     runtime::SandboxSpec spec);
  Task<> claim_job(std::shared_ptr<Claiming> job);
  Task<Claimed> claim_locked(std::shared_ptr<Claiming> job, sandbox::Sandbox row);
  // What a request without an end gets, and no request gets more.
  void limit_life(sandbox::CreateRequest& request) const;
  Task<Outcome<>> insert(sandbox::Sandbox row);
  Task<Outcome<sandbox::Sandbox>> start_locked(sandbox::Sandbox row, runtime::Runtime& runtime,
                                               runtime::PreparedPtr prepared, runtime::Claim claim);
  // Those of a create that was announced before it was done; see lifecycle_pending.cc.
  Task<> finish_later(sandbox::Sandbox row, sandbox::CreateRequest request,
                      std::shared_ptr<Preparing> preparing, std::shared_ptr<Job> job);
  Task<> tell_progress(std::string id, std::string handle, runtime::Runtime& runtime,
                       std::shared_ptr<Preparing> preparing);
  Task<> store_not_started(sandbox::Sandbox row, sandbox::Failure why);
  Task<bool> is_still_pending(std::string id);
  Task<Result<void>> store_running(sandbox::Sandbox row);
  Task<> abandon(sandbox::Sandbox row);

  using Change = Task<Outcome<>> (Lifecycle::*)(Scope, std::string);
  Task<Outcome<>> change_living(Principal who, std::string id, Change change);
  Task<> change_job(std::shared_ptr<Job> job, Scope scope, std::string id, Change change);
  Task<Outcome<>> pause_locked(Scope scope, std::string id);
  Task<Outcome<>> resume_locked(Scope scope, std::string id);
  Task<Outcome<>> stop_locked(sandbox::SandboxPtr row, sandbox::Reason why);
  // Those that nobody uses; see lifecycle_idle.cc.
  Task<> idle_loop();
  Task<> sleep_job(std::string id);
  Task<Outcome<>> wake_locked(Scope scope, std::string id);
  Task<> note_slow(std::string id, sandbox::Status status, std::shared_ptr<bool> done);
  Task<Result<void>> store_change(std::string id, sandbox::Status status, std::string event);
  Task<> set_quietly(std::string id, sandbox::Status status);

  Task<> remove_job(std::shared_ptr<Job> job, Scope scope, std::string id);
  Task<Result<void>> remove_locked(Scope scope, std::string id, sandbox::Reason reason);
  Task<> trim_later();
  Task<> note_removal(std::string id, sandbox::Reason reason);  // its row goes, its events stay
  static void keep_trying(const std::string& id, const Result<void>& noted);

  // What others do to sandboxes; see lifecycle_news.cc.
  void listen();
  void stop_listening();
  Task<> follow(runtime::Runtime& runtime, runtime::News news);
  Task<> follow_pause(runtime::Runtime& runtime, sandbox::Sandbox row);
  Task<> note_trouble(sandbox::Sandbox row, std::string what);

  // It runs: its end is waited for, and its uses, if it wants that.
  void attend(const sandbox::Sandbox& row, Uses::Now now = Uses::Now::awake);
  void forget(const std::string& id);
  // Until the sandbox has ended and that is stored.
  Task<> watch(std::string id, std::string handle, runtime::Runtime& runtime);
  // Nobody knows what it does; asked again until somebody does.
  void lose_sight(const std::string& id, Error why);
  runtime::Runtime& runtime_of(const sandbox::Sandbox& row) { return runtimes_.of(row.runtime); }
  Task<Result<void>> store_end_locked(std::string id, std::string handle, runtime::End end);
  Task<Result<void>> store_end(std::string id, runtime::End end);
  Task<> drain();
  Task<> write_record(std::string id);

  Task<> expiry_loop();
  // Removes until it is done; without a reason what is due, as long as it is.
  enum class First { now, after_a_while };
  void keep_removing(const std::string& id, std::optional<sandbox::Reason> reason, First first);
  Task<> removal_job(std::string id, std::optional<sandbox::Reason> reason);
  Task<Result<void>> expire_locked(std::string id);
  size_t busy_removals() const;

  Task<> recover_runtime(std::shared_ptr<Recovery> recovery);
  Task<> recover_all(std::shared_ptr<Recovery> recovery);
  void mark_unreachable(const Recovery& recovery, const Error& why);
  Task<> recover_some(std::shared_ptr<Recovery> recovery);
  Task<> recover_row(sandbox::Sandbox row);
  Task<> recover_stranger(runtime::Runtime& runtime, std::string handle);
  Task<> recover_stranger_later(runtime::Runtime& runtime, std::string handle);
  Task<Result<void>> settle_inherited(runtime::Runtime& runtime, std::string handle,
                                      runtime::Recalled recalled);
  Task<Result<void>> settle_stranger(runtime::Runtime& runtime, std::string handle);
  Task<Result<void>> adopt_row(sandbox::Sandbox row);
  Task<> adopt_later(std::string id);
  Task<Result<void>> reconcile_pause(sandbox::Sandbox row, bool paused);

  io::Executor executor_;
  store::Repository& store_;
  runtime::Runtimes& runtimes_;
  const Clock& clock_;
  std::function<void(const std::string&)> on_end_ = [](const std::string&) {};
  KeyedLock locks_;
  KeyedLock edits_;  // of metadata and expiry, which need not wait for a pause or a start
  // Removals under way, and when their latest attempt began; one that waits for its next has no time.
  std::map<std::string, std::optional<std::chrono::steady_clock::time_point>> expiring_;
  std::map<std::string, Error> unreachable_;  // by id, with the cause
  size_t ending_ = 0;                         // ends that are known and not stored yet
  io::Event ends_stored_;
  StoppedTimes stops_;
  Uses uses_;
  io::Duration held_ = kHeld;
  std::optional<std::chrono::seconds> longest_life_;
  std::map<std::string, std::shared_ptr<io::Event>> starting_;  // announced and not started, by id
  io::asio::steady_timer expiry_timer_;
  WallTime next_round_ = WallTime::max();
  WallTime next_prune_ = WallTime::min();
  bool trims_later_ = false;
  io::TaskGroup tasks_;
};

}  // namespace osb::server
