#pragma once

// Does the part of SQLite's work that waits for the disk, on a thread and a connection of its own, because
// the loop must not: moves committed pages from the write-ahead log into the database file when the log is
// long, and lets the log reach the disk soon after a commit. A power cut loses the commits of the last
// moment, not those of the last half minute.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"
#include "store/database.h"

namespace osb::store {

class Checkpointer {
 public:
  static constexpr int kLogPages = 1000;  // a little less than kLogBytes; SQLite's own default
  // How long commits wait for others before all of them are brought to the disk.
  static constexpr auto kGather = std::chrono::milliseconds(400);

  // Takes over from SQLite's automatic checkpoints on `db`, which must outlive this.
  // An exclusive one is checkpointed by itself, and only synced here.
  static Result<std::unique_ptr<Checkpointer>> start(Database& db, const std::string& path, Locking locking);
  ~Checkpointer();  // waits for a checkpoint that runs
  Checkpointer(const Checkpointer&) = delete;

 private:
  Checkpointer(Database& db, std::optional<Database> own, std::string path);
  static int after_commit(void* self, sqlite3*, const char*, int pages);
  void run() OSB_EXCLUDES(mu_);
  bool wait_for_commits() OSB_REQUIRES(mu_);  // false when the thread is to end
  Result<void> move_pages();
  void report(const Result<void>& outcome);
  Result<void> sync_file();
  Result<void> sync_log();

  Database& db_;
  std::optional<Database> own_;  // these belong to thread_
  std::string path_;
  Fd log_;
  bool is_failing_ = false;
  Mutex mu_;
  Condition changed_;
  bool stopping_ OSB_GUARDED_BY(mu_) = false, is_long_ OSB_GUARDED_BY(mu_) = false;
  bool is_unsynced_ OSB_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace osb::store
