#pragma once

// The life of snapshots: made in the background of a request, found, deleted, recovered; and what is made of
// them at once: forks.
//
// The truth is in the store and in the runtime. A row is written before anything is copied; the runtime knows
// which copies are complete. While a sandbox is copied nobody else changes it, so whoever deletes it a moment
// after asking for a snapshot waits until it is captured. Belongs to one loop.

#include <map>
#include <memory>

#include "base/clock.h"
#include "io/task.h"
#include "runtime/image_library.h"
#include "runtime/runtimes.h"
#include "sandbox/create_request.h"
#include "sandbox/failure.h"
#include "sandbox/snapshot.h"
#include "server/lifecycle.h"
#include "store/repository.h"

namespace osb::server {

class Snapshots {
 public:
  Snapshots(io::Executor executor, store::Repository& store, runtime::Runtimes& runtimes,
            Lifecycle& lifecycle, const Clock& clock = Clock::system());
  Snapshots(const Snapshots&) = delete;

  // Goes on with what an earlier server began. Does not wait for the runtime.
  Task<> recover();
  Task<> close();

  // Answers when it is accepted; it is Ready or Failed later.
  Task<Outcome<sandbox::Snapshot>> create(Principal who, std::string sandbox_id,
                                          std::optional<std::string> name);
  Task<Outcome<sandbox::Snapshot>> get(Principal who, std::string id);
  Task<Outcome<>> remove(Principal who, std::string id);

  // While it lives, the snapshot is not deleted.
  using Use = std::shared_ptr<void>;
  // For a create: fills in what the snapshot that the request names is made of.
  Task<Outcome<Use>> find_base(Principal who, sandbox::CreateRequest& request);

  // Sandboxes with the files that this one has now, and everything else that it was made with. All or none.
  Task<Outcome<std::vector<sandbox::Sandbox>>> fork(Principal who, std::string sandbox_id, int64_t count);
  Task<Outcome<sandbox::Sandbox>> roll_back(Principal who, std::string sandbox_id, std::string snapshot_id);
  // An image of what the sandbox has now, or of a snapshot; `what` says the rest. Its id.
  struct CommitSource {
    std::string sandbox = {}, snapshot = {};  // one of them
  };
  Task<Outcome<std::string>> commit(Principal who, CommitSource source, runtime::ImageCommit what);
  // By path.
  Task<Outcome<std::vector<sandbox::FileChange>>> changes(Principal who, std::string sandbox_id);

 private:
  struct Forking;
  using Forks = std::vector<sandbox::Sandbox>;

  Task<Outcome<sandbox::SandboxPtr>> find_source(Principal who, const std::string& id);
  Task<Result<void>> note_policy(const sandbox::Snapshot& row, std::string handle);
  Task<Outcome<std::string>> policy_that_rests(const sandbox::Sandbox& source);
  Task<> make(sandbox::Snapshot row, KeyedLock::Guard guard, std::string handle);
  // The second half of making one: Runtime::keep or Runtime::keep_for_now.
  using Keep = Task<Result<runtime::KeptSnapshot>> (runtime::Runtime::*)(std::string);
  Task<Result<runtime::KeptSnapshot>> capture_and_keep(sandbox::Snapshot& row, KeyedLock::Guard guard,
                                                       std::string handle, Keep keep);
  Task<> finish(sandbox::Snapshot row, Result<runtime::KeptSnapshot> kept, bool is_recovery);
  Task<Result<runtime::KeptSnapshot>> keep_patiently(runtime::Runtime& runtime, std::string id,
                                                     Keep keep = &runtime::Runtime::keep);
  Task<Result<void>> remove_now(sandbox::Snapshot row);
  Task<> recover_row(sandbox::Snapshot row);
  Task<> recover_strangers(runtime::Runtime& runtime);
  Task<Outcome<sandbox::CreateRequest>> request_like(const sandbox::Sandbox& row,
                                                     std::optional<std::string> record);
  Task<> fork_job(std::shared_ptr<Forking> forking, std::string sandbox_id, int64_t count);
  Task<Outcome<Forks>> fork_now(std::shared_ptr<Forking> forking, std::string sandbox_id, int64_t count);
  Task<> fork_some(std::shared_ptr<Forking> forking);
  struct Passing {
    sandbox::Snapshot row;
    KeyedLock::Guard turn;  // held to the end: nobody takes it away meanwhile
  };
  Task<Outcome<Passing>> insert_passing(const sandbox::Sandbox& source, std::string what_for);
  struct Committing;
  Task<> commit_job(std::shared_ptr<Committing> committing);
  Task<Outcome<std::string>> commit_sandbox(Committing& committing);
  Task<Outcome<std::string>> commit_snapshot(Committing& committing);
  Task<Outcome<std::string>> commit_now(sandbox::Snapshot row, runtime::ImageCommit what);
  Task<> forget_passing(Passing passing);
  Task<std::string> base_image_of(std::string image);

  io::Executor executor_;
  store::Repository& store_;
  runtime::Runtimes& runtimes_;
  Lifecycle& lifecycle_;
  const Clock& clock_;
  KeyedLock locks_;                    // by id of the snapshot
  std::map<std::string, int> in_use_;  // creates under way
  io::TaskGroup tasks_;
};

}  // namespace osb::server
