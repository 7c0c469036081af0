#include "server/keyed_lock.h"

namespace osb::server {

struct KeyedLock::Guard::Slot {
  explicit Slot(const io::Executor& executor) : freed(executor) {}
  io::Event freed;
  bool held = false;
  int users = 0;  // holder and waiters; the slot goes with the last
};

KeyedLock::Guard::Guard(KeyedLock& owner, std::string key) : owner_(&owner), key_(std::move(key)) {
  auto& slot = owner.slots_[key_];
  if (slot == nullptr) slot = std::make_shared<Slot>(owner.executor_);
  slot_ = slot;
  ++slot_->users;
}

KeyedLock::Guard::Guard(Guard&& other) noexcept
    : owner_(other.owner_),
      key_(std::move(other.key_)),
      slot_(std::move(other.slot_)),
      held_(std::exchange(other.held_, false)) {}

KeyedLock::Guard::~Guard() {
  if (slot_ == nullptr) return;
  if (held_) {
    slot_->held = false;
    slot_->freed.set();  // wakes every waiter; the first to run takes it
  }
  if (--slot_->users == 0) owner_->slots_.erase(key_);
}

io::Task<KeyedLock::Guard> KeyedLock::lock(std::string key) {
  Guard guard(*this, std::move(key));
  while (guard.slot_->held) {
    guard.slot_->freed.reset();
    co_await guard.slot_->freed.wait();
  }
  guard.slot_->held = true;
  guard.held_ = true;
  co_return guard;
}

}  // namespace osb::server
