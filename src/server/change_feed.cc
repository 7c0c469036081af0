#include "server/change_feed.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>

namespace osb::server {

namespace asio = boost::asio;

ChangeFeed::Follower::Follower(ChangeFeed& feed, const std::string& id)
    : feed_(feed), timer_(feed.executor_), at_(feed.followers_.emplace(id, this)) {}

void ChangeFeed::Follower::wake() {
  woken_ = true;
  timer_.cancel();
}

void ChangeFeed::Follower::leave() {
  left_ = true;
  wake();
}

io::Task<> ChangeFeed::Follower::wait(Time until) {
  if (woken_ || left()) co_return;
  timer_.expires_at(until);
  std::ignore = co_await timer_.async_wait(asio::as_tuple(asio::deferred));
}

void ChangeFeed::changed(const std::string& id) {
  if (followers_.empty()) return;
  if (id.empty()) {
    for (auto& [key, follower] : followers_) follower->wake();
    return;
  }
  for (const std::string& key : {std::string(), id}) {
    auto [first, last] = followers_.equal_range(key);
    for (auto next = first; next != last; ++next) next->second->wake();
  }
}

void ChangeFeed::close() {
  closed_ = true;
  for (auto& [key, follower] : followers_) follower->wake();
}

}  // namespace osb::server
