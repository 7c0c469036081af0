#pragma once

// The server's state on disk: one database file, opened, brought to the current schema, and its tables. The
// first implementation of the repository (sqlite_repository.h) is made of it; nothing above uses it directly.
//
// A disk that is full, read-only or broken keeps nothing of what has happened from counting: see Backlog.
// What has not happened yet (a new row) is refused instead.

#include <chrono>
#include <memory>
#include <string>

#include "store/backlog.h"
#include "store/checkpointer.h"
#include "store/create_keys.h"
#include "store/events.h"
#include "store/files.h"
#include "store/outputs.h"
#include "store/owner.h"
#include "store/pools.h"
#include "store/sandboxes.h"
#include "store/snapshots.h"

namespace osb::store {

class Store {
 public:
  // Its errors are those of open_repository().
  static Result<std::unique_ptr<Store>> open(const std::string& path, const DatabaseOwner& owner = {});
  static Result<std::unique_ptr<Store>> open_in_memory();
  Store(const Store&) = delete;
  ~Store();

  Sandboxes& sandboxes() { return *sandboxes_; }
  Events& events() { return *events_; }
  Outputs& outputs() { return *outputs_; }
  CreateKeys& create_keys() { return *create_keys_; }
  Snapshots& snapshots() { return *snapshots_; }
  Pools& pools() { return *pools_; }
  // Changes that belong together: nothing of them is stored unless the transaction commits.
  Result<Transaction> begin();

  // What has happened counts from now on, for every reader. An error says that it is not on the disk yet: it
  // is tried again by tend() until it is.
  Result<void> note(std::string_view id, Change change) { return backlog_->note(id, std::move(change)); }
  // Writes what waits of one row; fine when nothing does.
  Result<void> settle(std::string_view id) { return backlog_->settle(id); }
  size_t waiting() const { return backlog_->size(); }

  // From time to time: writes what waits, keeps room on the disk. Says how long it can wait until the next
  // time.
  std::chrono::milliseconds tend();
  // It was opened on a read-only file system, and could be opened properly now; or it is locked, by nobody
  // but this process. Both are cured by the next process.
  bool wants_reopening() const { return is_stuck() || (files_ && files_->writable_again()); }

  // Is there room for something new? Costs one system call, or two.
  Result<void> check_room() const;
  // Can the state be written, really, and is there room for more? Writes a page.
  Result<void> check_writing();

 private:
  explicit Store(Database db) : db_(std::move(db)) {}
  static Result<std::unique_ptr<Store>> finish(Database db, const DatabaseOwner& owner);
  void note_lock(const Result<void>& written, std::chrono::steady_clock::time_point tried_at);
  bool is_stuck() const;

  std::unique_ptr<Files> files_;          // first: closed after the connections; absent in memory
  std::vector<std::string> directories_;  // whose file systems have to have room
  Database db_;
  std::optional<Sandboxes> sandboxes_;
  std::optional<Events> events_;
  std::optional<Outputs> outputs_;
  std::optional<CreateKeys> create_keys_;
  std::optional<Snapshots> snapshots_;
  std::optional<Pools> pools_;
  std::optional<Backlog> backlog_;
  bool backlog_reported_ = false;
  // Since when it has not been possible to begin a transaction, because somebody seems to be in one.
  std::optional<std::chrono::steady_clock::time_point> locked_since_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace osb::store
