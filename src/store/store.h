#pragma once

// The server's state on disk: one database file, opened, brought to the current schema, and its tables.

#include "store/checkpointer.h"
#include "store/events.h"
#include "store/outputs.h"
#include "store/sandboxes.h"

namespace osb::store {

class Store {
 public:
  // Makes missing parent directories (mode 0700).
  static Result<std::unique_ptr<Store>> open(const std::string& path);
  static Result<std::unique_ptr<Store>> open_in_memory();
  Store(const Store&) = delete;

  Sandboxes& sandboxes() { return *sandboxes_; }
  Events& events() { return *events_; }
  Outputs& outputs() { return *outputs_; }
  // Changes that belong together: nothing of them is stored unless the transaction commits.
  Result<Transaction> begin() { return Transaction::begin(db_); }

 private:
  explicit Store(Database db) : db_(std::move(db)) {}
  static Result<std::unique_ptr<Store>> finish(Database db);

  Database db_;
  std::optional<Sandboxes> sandboxes_;
  std::optional<Events> events_;
  std::optional<Outputs> outputs_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace osb::store
