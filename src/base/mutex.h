#pragma once

// A mutex that the compiler knows: what is OSB_GUARDED_BY(mu_) is touched only while mu_ is held, what
// OSB_REQUIRES(mu_) is called only then, or it does not compile. The exception here, where most things belong
// to one loop; used by threads that block.
//
//   Mutex mu_;
//   Condition changed_;
//   bool done_ OSB_GUARDED_BY(mu_) = false;
//
//   MutexLock lock(mu_);
//   while (!done_) changed_.wait(mu_);  // a loop: the analysis does not see into a predicate

#include <chrono>
#include <condition_variable>
#include <mutex>

#define OSB_GUARDED_BY(mutex) __attribute__((guarded_by(mutex)))
#define OSB_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define OSB_EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))

namespace osb {

class __attribute__((capability("mutex"))) Mutex {
 public:
  void lock() __attribute__((acquire_capability())) { native_.lock(); }
  void unlock() __attribute__((release_capability())) { native_.unlock(); }

 private:
  friend class Condition;
  std::mutex native_;
};

// Holds a mutex for as long as it lives, except between unlock() and lock().
class __attribute__((scoped_lockable)) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) __attribute__((acquire_capability(mutex))) : mutex_(mutex) { lock(); }
  ~MutexLock() __attribute__((release_capability())) {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;

  void unlock() __attribute__((release_capability())) {
    held_ = false;
    mutex_.unlock();
  }
  void lock() __attribute__((acquire_capability())) {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = false;
};

// Something about what a mutex guards has changed. Wakes without cause, as all of them do.
class Condition {
 public:
  void wait(Mutex& mutex) OSB_REQUIRES(mutex) {
    std::unique_lock lock(mutex.native_, std::adopt_lock);
    native_.wait(lock);
    lock.release();
  }
  // False when that time has come.
  bool wait_until(Mutex& mutex, std::chrono::steady_clock::time_point time) OSB_REQUIRES(mutex) {
    std::unique_lock lock(mutex.native_, std::adopt_lock);
    bool in_time = native_.wait_until(lock, time) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void notify_one() { native_.notify_one(); }
  void notify_all() { native_.notify_all(); }

 private:
  std::condition_variable native_;
};

}  // namespace osb
