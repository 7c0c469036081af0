#pragma once

// For tests: the engine behind MemoryRuntime, which makes nothing but remembers it. Several runtimes, each of
// another owner, may share one. It outlives servers, and with a file it outlives processes; faults are
// injected by tests in the same process, or through a second file by tests outside.

#include <map>
#include <memory>
#include <string>

#include "io/task.h"
#include "runtime/runtime.h"

namespace osb::testkit {

struct MemorySandbox {
  explicit MemorySandbox(const io::Executor& executor) : ended(executor) {}
  runtime::SandboxSpec spec;
  runtime::Claim claim;
  std::string owner;
  std::string identity;
  io::Event ended;
  runtime::End end;
  bool paused = false;
};

// What can be wrong with an engine.
struct Faults {
  bool away = false;             // nobody answers
  io::Duration slow{};           // before each answer
  bool lies_about_ends = false;  // says of living sandboxes that it does not know any more, again and again
  bool keeps_destroyed = false;  // says that it has removed what it goes on running
  bool names_others = false;     // lists handles of which it knows nothing

  friend bool operator==(const Faults&, const Faults&) = default;
};

class MemoryEngine {
 public:
  explicit MemoryEngine(io::Executor executor) : executor_(std::move(executor)) {}
  // What `path` holds; every change goes there. Faults are read from `path`.faults before each call.
  static Result<std::shared_ptr<MemoryEngine>> open(io::Executor executor, std::string path);

  const io::Executor& executor() const { return executor_; }
  // Faults as they are now.
  const Faults& look();
  // To be called after each change.
  void save();
  // Everything is as if it had never been.
  void forget(const std::string& id);

  Faults faults;
  // By id, as tests know them; the server says handles.
  std::map<std::string, std::shared_ptr<MemorySandbox>> sandboxes;

 private:
  Result<void> load();

  io::Executor executor_;
  std::string path_;
};

}  // namespace osb::testkit
