#include "server/connection_pool.h"

namespace osb::server {

std::optional<http::ClientConnection> ConnectionPool::take(const std::string& id) {
  auto found = idle_.find(id);
  if (found == idle_.end()) return std::nullopt;
  auto& queue = found->second;
  std::optional<http::ClientConnection> connection;
  while (!queue.empty() && !connection) {
    if (queue.back().connection.alive()) connection = std::move(queue.back().connection);
    queue.pop_back();
    --size_;
  }
  return connection;
}

void ConnectionPool::put(const std::string& id, http::ClientConnection connection, Instant now) {
  // Whether the other end is still there is asked when it is taken: that is when it counts.
  if (size_ >= kTotal || !connection.reusable()) return;
  auto& queue = idle_[id];
  if (queue.size() >= kPerSandbox) return;
  queue.push_back({std::move(connection), now});
  ++size_;
}

void ConnectionPool::drop(const std::string& id) {
  auto found = idle_.find(id);
  if (found == idle_.end()) return;
  size_ -= found->second.size();
  idle_.erase(found);
}

void ConnectionPool::sweep(Instant now) {
  for (auto it = idle_.begin(); it != idle_.end();) {
    auto& queue = it->second;
    size_ -= std::erase_if(queue, [&](const Idle& idle) { return now - idle.since > kMaxIdle; });
    it = queue.empty() ? idle_.erase(it) : std::next(it);
  }
}

}  // namespace osb::server
