#pragma once

// A sandbox as this service knows it: plain values, which the store keeps, the lifecycle changes and a wire
// format shows. None of them is text of a wire format or of a database.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "sandbox/principal.h"
#include "sandbox/status.h"

namespace osb::sandbox {

using Metadata = std::map<std::string, std::string>;

struct Sandbox {
  std::string id = {};
  std::string owner = {};  // never changes, and never is empty in a store
  Status status = {};
  std::string image = {};
  std::vector<std::string> entrypoint = {};
  Metadata metadata = {};
  std::map<std::string, std::string> limits = {};      // as the client wrote them
  std::vector<std::string> env_names = {};             // values are never stored
  std::map<std::string, std::string> extensions = {};  // what is given back
  std::string platform = {};                           // "linux/amd64" when the client asked for one
  // What the sandbox is called on its host, in names that others may see (groups, sockets, directories):
  // random, and unrelated to the id, which is for the sandbox's owner alone.
  std::string handle = {};
  std::string runtime = {};   // the name of the one that has it
  std::string identity = {};  // the runtime's; empty until the sandbox runs
  WallTime created = {};
  std::optional<WallTime> expires = {};
};

// What a reader holds does not change under it.
using SandboxPtr = std::shared_ptr<const Sandbox>;

// Which of the sandboxes in a scope.
struct Filter {
  std::optional<std::vector<State>> states = {};                   // any of these
  std::vector<std::pair<std::string, std::string>> metadata = {};  // all of these
};

// What happened to a sandbox; outlives it.
struct Event {
  WallTime at = {};
  std::string kind = {};    // Created, Running, Ended, Deleted, Expired, ...
  std::string detail = {};  // a sentence for people
};

// The last part of what the entry process of an ended sandbox wrote.
struct Output {
  std::string text = {};
  bool truncated = false;
};

}  // namespace osb::sandbox
