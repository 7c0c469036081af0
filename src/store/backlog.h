#pragma once

// What has happened and could not be written down: the disk is full, read-only or broken. A sandbox that was
// ended has ended whatever the disk says, so the change counts at once, for every reader, and is written as
// soon as the disk takes it. There is at most one entry per row, so this is bounded as the rows are.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/change.h"
#include "store/events.h"
#include "store/outputs.h"
#include "store/sandboxes.h"

namespace osb::store {

class Backlog {
 public:
  Backlog(Database& db, Sandboxes& sandboxes, Events& events, Outputs& outputs)
      : db_(&db), sandboxes_(&sandboxes), events_(&events), outputs_(&outputs) {}

  // Counts from now on. An error says that it is not on the disk yet; it is tried again.
  Result<void> note(std::string_view id, Change change);
  // Tries to write what waits. An error: something still waits.
  Result<void> settle();
  Result<void> settle(std::string_view id);
  size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::vector<Event> events;
    std::optional<Output> output;
  };

  Result<void> write(const std::string& id, const Waiting& waiting);

  Database* db_;
  Sandboxes* sandboxes_;  // has the part of it that readers see
  Events* events_;
  Outputs* outputs_;
  std::map<std::string, Waiting, std::less<>> waiting_;
};

}  // namespace osb::store
