#pragma once

// The rows of sandboxes. A row is written before anything of its sandbox exists (state Pending, no identity)
// and removed after everything of it is gone, so that after a kill -9 at any instruction the rows name all
// there can be.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "store/database.h"

namespace osb::store {

enum class State { pending, running, pausing, paused, resuming, stopping, terminated, failed };
std::string_view to_string(State state);                 // the word of the wire: Pending, Running, ...
std::optional<State> state_from(std::string_view word);  // in any case

struct Status {
  State state = State::pending;
  std::string reason, message;
  WallTime changed;
};

struct Sandbox {
  std::string id;
  Status status;
  std::string image;
  std::string entrypoint = "[]";  // JSON array of strings
  std::string metadata = "{}";    // JSON object of strings
  std::string limits = "{}";      // JSON object of strings, as the client wrote them
  std::string env_names = "[]";   // JSON array of strings; values are never stored
  std::string extensions = "{}";  // JSON object of strings, what is given back
  std::string platform;           // "linux/amd64" when the client asked for one
  // What the sandbox is called on its host, in names that others may see (groups, sockets, directories):
  // random, and unrelated to the id, which is for the sandbox's owner alone.
  std::string handle;
  std::string identity;  // the runtime's; empty until the sandbox runs
  WallTime created;
  std::optional<WallTime> expires;
};

using SandboxPtr = std::shared_ptr<const Sandbox>;

struct Filter {
  std::optional<std::vector<State>> states;                   // any of these
  std::vector<std::pair<std::string, std::string>> metadata;  // all of these
};

// Rows that were read are kept until they change: all writes of this process's tables go through here, and no
// other process writes.
class Sandboxes {
 public:
  static constexpr size_t kMaxKept = 16384;
  static Result<Sandboxes> open(Database& db);

  Result<void> insert(const Sandbox& row);
  Result<SandboxPtr> find(std::string_view id);  // null: there is none
  // False: there is no such row (any more).
  Result<bool> set_identity(std::string_view id, std::string_view identity, const Status& status);
  Result<bool> set_status(std::string_view id, const Status& status);
  Result<bool> set_expiry(std::string_view id, WallTime expires);
  Result<bool> set_metadata(std::string_view id, std::string_view json);
  Result<bool> remove(std::string_view id);

  // Newest first.
  Result<void> list(const Filter& filter, int64_t limit, int64_t offset,
                    const std::function<void(const Sandbox&)>& visit);
  Result<int64_t> count(const Filter& filter);

  Result<std::vector<std::string>> due(WallTime now, int64_t limit);  // ids, the longest overdue first
  Result<std::optional<WallTime>> next_expiry();

  // Moves with every change: what was made from rows is valid as long as this stays the same.
  uint64_t generation() const { return generation_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  Sandboxes(Database& db) : db_(&db) {}
  Result<bool> change(std::string_view id, Query query);
  Result<SandboxPtr> read(std::string_view id);

  Database* db_;
  std::optional<Statement> insert_, find_, identity_, status_, expiry_, metadata_, remove_, list_, count_,
      due_, next_;
  std::unordered_map<std::string, SandboxPtr, Hash, std::equal_to<>> kept_;
  uint64_t generation_ = 0;
};

}  // namespace osb::store
