#pragma once

// Moves committed pages from the write-ahead log into the database file, on a thread and a connection of its
// own: this is the one part of SQLite's work that waits for the disk, and the loop must not.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "store/database.h"

namespace osb::store {

class Checkpointer {
 public:
  static constexpr int kLogPages = 1000;  // 4 MB; SQLite's own default

  // Takes over from SQLite's automatic checkpoints on `db`, which must outlive this.
  static Result<std::unique_ptr<Checkpointer>> start(Database& db, const std::string& path);
  ~Checkpointer();  // waits for a checkpoint that runs
  Checkpointer(const Checkpointer&) = delete;

 private:
  Checkpointer(Database& db, Database own);
  static int after_commit(void* self, sqlite3*, const char*, int pages);
  void run();

  Database& db_;
  Database own_;  // belongs to thread_
  std::atomic<uint32_t> requests_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace osb::store
