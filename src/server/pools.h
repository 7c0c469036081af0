#pragma once

// Pools of sandboxes that wait. What is claimed is somebody's sandbox from then on, like any other; what
// waits is in no list, never expires, and goes with its pool.
//
// The truth is in the store and in the runtime. A member has a row before anything of it is made. A claim
// starts the entry process in it; then one transaction takes that row and makes one of a sandbox. So after a
// kill -9 at any instruction it is the pool's or the claimer's, and one that was started for a claimer who
// was never told is neither: the runtime says so when it is adopted, and it is destroyed. Nothing is put
// back.
//
// Members are made in the background, one at a time, and foreground creates come first. Belongs to one loop.

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "base/clock.h"
#include "io/task.h"
#include "runtime/runtimes.h"
#include "sandbox/create_request.h"
#include "sandbox/failure.h"
#include "sandbox/pool.h"
#include "server/create_queue.h"
#include "server/keyed_lock.h"
#include "server/lifecycle.h"
#include "server/snapshots.h"
#include "store/repository.h"

namespace osb::server {

class Pools {
 public:
  // Of one owner.
  static constexpr size_t kMostPools = 64;

  struct Parts {
    store::Repository& store;
    runtime::Runtimes& runtimes;
    Lifecycle& lifecycle;
    Snapshots& snapshots;
    const CreateQueue& creates;
    const Clock& clock = Clock::system();
  };
  Pools(io::Executor executor, Parts parts);
  Pools(const Pools&) = delete;

  // What a template says, as a request; a template that cannot be read any more gives its failure.
  using Read = std::function<Outcome<sandbox::CreateRequest>(const std::string& text)>;
  // Takes over what an earlier server had, and begins to fill. Does not wait for the runtime.
  Task<> recover(Read read);
  Task<> close();

  // How long a claim waits for a sandbox that is being made.
  void wait_at_most(io::Duration limit) { patience_ = limit; }

  Task<Outcome<sandbox::PoolView>> create(Principal who, sandbox::Pool pool, sandbox::CreateRequest shape);
  Task<Outcome<sandbox::PoolView>> get(Principal who, std::string name);
  Task<Outcome<std::vector<sandbox::PoolView>>> list(Principal who);  // by name
  Task<Outcome<sandbox::PoolView>> resize(Principal who, std::string name, sandbox::PoolCapacity capacity);
  // Its claimed sandboxes stay.
  Task<Outcome<>> remove(Principal who, std::string name);

  // A sandbox of the pool that the request names.
  Task<Outcome<sandbox::Sandbox>> claim(Principal who, sandbox::CreateRequest request);

  // The server's own pool, for creates that say no more than its shape does. Comes before recover().
  void keep_ready(sandbox::Pool pool, sandbox::CreateRequest shape);
  // One of it, if the request fits and one waits at this moment.
  Task<Outcome<std::optional<sandbox::Sandbox>>> take_ready(Principal who, sandbox::CreateRequest request);

 private:
  struct Member;
  struct Live;
  using LivePtr = std::shared_ptr<Live>;
  using MemberPtr = std::shared_ptr<Member>;

  Task<Outcome<LivePtr>> find(const Principal& who, const std::string& name);
  Task<sandbox::PoolView> view(LivePtr pool);
  // Those that are gone are forgotten.
  Task<> count_claimed(LivePtr pool);
  LivePtr add(sandbox::Pool row, Outcome<sandbox::CreateRequest> shape);

  // In the background, for each pool.
  Task<> tend(LivePtr pool);
  Task<> rest(LivePtr pool);
  Task<> make(LivePtr pool);
  Task<Outcome<>> make_one(LivePtr pool, sandbox::PoolMember row);
  Task<> let_claim_pass(LivePtr pool);
  Task<> let_creates_pass(LivePtr pool);
  void put(LivePtr pool, sandbox::PoolMember row);
  Task<> watch(LivePtr pool, MemberPtr member);
  Task<> discard(sandbox::PoolMember row);
  Task<> adopt(LivePtr pool, sandbox::PoolMember row);

  Task<Outcome<MemberPtr>> take(LivePtr pool);
  Task<Lifecycle::Claimed> claim_from(LivePtr pool, Principal who, sandbox::CreateRequest request,
                                      MemberPtr member);

  io::Executor executor_;
  store::Repository& store_;
  runtime::Runtimes& runtimes_;
  Lifecycle& lifecycle_;
  Snapshots& snapshots_;
  const CreateQueue& creates_;
  const Clock& clock_;
  io::Duration patience_ = std::chrono::seconds(10);
  std::map<std::pair<std::string, std::string>, LivePtr> pools_;  // by owner and name
  // Sandboxes that were claimed and may be there still, by owner and name of the pool.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> claimed_;
  std::chrono::steady_clock::time_point last_claim_ = {};
  std::set<std::string> under_way_;  // claims whose rows may not be there yet
  LivePtr ready_;
  KeyedLock making_;
  KeyedLock changes_;  // of one pool, by its owner and name
  io::TaskGroup tasks_;
};

}  // namespace osb::server
