#pragma once

// Who waits for changes of sandboxes: long polls for those of one, event streams for those of all. The feed
// says only that something may have changed; what it is, whoever waits reads in the store, where it is before
// anybody is woken. So nothing queues up here for a slow reader, and nothing is lost for one that was away.
// Belongs to one loop.

#include <boost/asio/steady_timer.hpp>
#include <map>
#include <optional>
#include <string>

#include "io/task.h"

namespace osb::server {

class ChangeFeed {
 public:
  static constexpr size_t kMaxFollowers = 512;
  using Time = std::chrono::steady_clock::time_point;

  explicit ChangeFeed(io::Executor executor) : executor_(std::move(executor)) {}
  ChangeFeed(const ChangeFeed&) = delete;

  // Stands in the feed as long as it lives, and must not outlive it. What changes after it was made or
  // renew()ed ends its next wait: renew, read, wait.
  class Follower {
   public:
    Follower(ChangeFeed& feed, const std::string& id);
    ~Follower() { feed_.followers_.erase(at_); }
    Follower(const Follower&) = delete;

    void renew() { woken_ = false; }
    // Until something changed, somebody left, the feed closed, or it is that late.
    io::Task<> wait(Time until);
    // The one who waits is gone: wait() returns at once from now on.
    void leave();
    bool left() const { return left_ || feed_.closed_; }

   private:
    friend ChangeFeed;
    void wake();

    ChangeFeed& feed_;
    boost::asio::steady_timer timer_;
    bool woken_ = false, left_ = false;
    std::multimap<std::string, Follower*>::iterator at_;
  };

  bool full() const { return followers_.size() >= kMaxFollowers; }
  size_t size() const { return followers_.size(); }
  // Of one sandbox; of any with "". Those who follow all (their id is "") hear of each.
  void changed(const std::string& id);
  // Nobody waits any more: for the end of the service.
  void close();

 private:
  io::Executor executor_;
  std::multimap<std::string, Follower*> followers_;
  bool closed_ = false;
};

}  // namespace osb::server
