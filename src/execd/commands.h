#pragma once

// The commands that clients may ask about: everything that runs, and what ended within the last day as far as
// it fits.

#include <list>
#include <map>
#include <memory>

#include "execd/command.h"

namespace osb::execd {

class Commands {
 public:
  explicit Commands(Core& core) : core_(core) {}

  // Registered before it returns. Of a command that could not be started only the background kind leaves a
  // record.
  std::shared_ptr<Command> start(CommandSpec spec);
  std::shared_ptr<Command> find(std::string_view id) const;
  // Drops finished ones that are too old or too many. Called every few starts, and some seconds after
  // there was something to do.
  void sweep(WallTime now);
  // Each holds three descriptors and its share of memory.
  bool full() const { return by_id_.size() >= kMaxRunning && running() >= kMaxRunning; }
  static constexpr size_t kMaxRunning = 1024;

 private:
  size_t running() const;

  Core& core_;
  size_t starts_ = 0;
  std::list<std::shared_ptr<Command>> in_order_;  // oldest start first
  std::map<std::string, std::shared_ptr<Command>, std::less<>> by_id_;
};

}  // namespace osb::execd
