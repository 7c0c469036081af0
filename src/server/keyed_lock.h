#pragma once

// One lock per key, for as long as somebody holds or wants it: operations on one sandbox come one after the
// other, those on different sandboxes do not meet. Belongs to one loop.

#include <memory>
#include <string>
#include <unordered_map>

#include "io/task.h"

namespace osb::server {

class KeyedLock {
 public:
  explicit KeyedLock(io::Executor executor) : executor_(std::move(executor)) {}
  KeyedLock(const KeyedLock&) = delete;

  // Held until it is destroyed. A cancelled holder or waiter gives it up by unwinding.
  class Guard {
   public:
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&&) = delete;
    ~Guard();

   private:
    friend class KeyedLock;
    struct Slot;
    Guard(KeyedLock& owner, std::string key);
    KeyedLock* owner_;
    std::string key_;
    std::shared_ptr<Slot> slot_;
    bool held_ = false;
  };

  io::Task<Guard> lock(std::string key);
  size_t size() const { return slots_.size(); }

 private:
  io::Executor executor_;
  std::unordered_map<std::string, std::shared_ptr<Guard::Slot>> slots_;
};

}  // namespace osb::server
