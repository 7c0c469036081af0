#pragma once

// Idle keep-alive connections to the execd of each sandbox, so that most requests through the proxy need no
// new one. Bounded in number and age; a sandbox that ends takes its connections with it. Belongs to one loop.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "http/client.h"

namespace osb::server {

class ConnectionPool {
 public:
  static constexpr size_t kPerSandbox = 16;
  static constexpr size_t kTotal = 512;
  static constexpr auto kMaxIdle = std::chrono::seconds(60);
  using Instant = std::chrono::steady_clock::time_point;

  // The one that was idle for the shortest time and whose other end is still there.
  std::optional<http::ClientConnection> take(const std::string& id);
  void put(const std::string& id, http::ClientConnection connection,
           Instant now = std::chrono::steady_clock::now());
  void drop(const std::string& id);
  // Closes what has been idle for longer than kMaxIdle.
  void sweep(Instant now = std::chrono::steady_clock::now());
  size_t size() const { return size_; }

 private:
  struct Idle {
    http::ClientConnection connection;
    Instant since;
  };
  // Oldest in front. One that has become empty stays for the next put(), until a sweep.
  std::unordered_map<std::string, std::vector<Idle>> idle_;
  size_t size_ = 0;
};

}  // namespace osb::server
