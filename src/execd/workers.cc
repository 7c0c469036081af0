#include "execd/workers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/short_turns.h"

namespace osb::execd {
namespace {

constexpr auto kIdleLife = std::chrono::seconds(5);

// Raw calls: the library's would change the credentials of every thread.
bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

std::vector<gid_t> own_groups() {
  std::vector<gid_t> groups(static_cast<size_t>(std::max(::getgroups(0, nullptr), 0)));
  int n = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(n, 0)));
  return groups;
}

}  // namespace

Workers::Identity::Identity(const Credentials* as) {
  if (!as) return;
  groups_before_ = own_groups();
  bool own = as->uid == ::geteuid() && as->gid == ::getegid();
  if (own && as->uid != 0) return;  // nothing to change, and nobody but root could change it
  switched_ = true;
  valid_ = set_groups(as->groups);
  // These calls do not report failure; asking with an impossible id returns what is in force.
  ::setfsgid(as->gid);
  ::setfsuid(as->uid);
  valid_ = valid_ && ::setfsgid(static_cast<gid_t>(-1)) == static_cast<int>(as->gid) &&
           ::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(as->uid);
}

Workers::Identity::~Identity() {
  if (!switched_) return;
  // Back to the effective ids, which also gives the file-system capabilities back.
  ::setfsuid(::geteuid());
  ::setfsgid(::getegid());
  set_groups(groups_before_);
}

Workers::~Workers() {
  MutexLock lock(mu_);
  closing_ = true;
  changed_.notify_all();
  while (threads_ > 0) changed_.wait(mu_);
}

bool Workers::start_thread(Workers& workers) {
  // Signals are for the loop's thread.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int failed = ::pthread_create(
      &thread, nullptr,
      [](void* self) -> void* {
        static_cast<Workers*>(self)->work();
        return nullptr;
      },
      &workers);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed == 0) ::pthread_detach(thread);
  return failed == 0;
}

void Workers::submit(std::function<void()> job) {
  MutexLock lock(mu_);
  queue_.push_back(std::move(job));
  if (idle_ >= queue_.size() || threads_ >= kMaxThreads) {
    changed_.notify_one();
    return;
  }
  if (start_(*this)) {
    ++threads_;  // it waits for the lock
    return;
  }
  // The sandbox has as many processes as it may have. The threads that are there will come to it; without any
  // it is done here: that holds up others for a moment, but a full sandbox still answers.
  if (threads_ > 0) return;
  auto own = std::move(queue_.back());
  queue_.pop_back();
  lock.unlock();
  own();
}

bool Workers::wait_for_job() {
  auto end = std::chrono::steady_clock::now() + kIdleLife;
  ++idle_;
  while (queue_.empty() && !closing_ && changed_.wait_until(mu_, end)) {
  }
  --idle_;
  return !queue_.empty();
}

void Workers::work() {
  // What the loop hands over is long: copying in short turns is slower.
  sys::take_usual_turns();
  MutexLock lock(mu_);
  while (!queue_.empty() || wait_for_job()) {
    auto job = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
  --threads_;
  changed_.notify_all();
}

}  // namespace osb::execd
