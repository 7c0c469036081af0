#pragma once

// Tells an address of the operator's choice about lookups that were denied, one POST each, in the order in
// which they came. Nothing of a sandbox waits for it: what the queue has no room for is dropped and counted.
// The same name of the same sandbox is told once within ten seconds: resolvers ask again and again.
//
// By TLS somebody else speaks for it: the server, or a second process of a sidecar, which has a library for
// it and comes with a connection for that purpose. It gets frames of {"body":TEXT}, each with a socket that
// is connected to the address, and answers each with {"status":NUMBER}.
//
// Belongs to one loop.

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "egress/host_network.h"
#include "io/socket.h"
#include "sandbox/webhook.h"

namespace osb::egress {

class DenyWebhook {
 public:
  struct Counts {
    uint64_t delivered = 0, failed = 0, dropped = 0;
  };
  // How long to wait before each further try, and for an answer.
  struct Patience {
    io::Duration first = std::chrono::seconds(1);
    io::Duration answer = std::chrono::seconds(5);
  };

  // Without an address it does nothing.
  DenyWebhook(const io::Executor& executor, HostNetwork& network, std::optional<sandbox::Webhook> hook)
      : DenyWebhook(executor, network, std::move(hook), Patience{}) {}
  DenyWebhook(const io::Executor& executor, HostNetwork& network, std::optional<sandbox::Webhook> hook,
              Patience patience)
      : network_(network), hook_(std::move(hook)), patience_(patience), news_(executor) {}

  // `id` is empty when the sandbox has the default policy: nobody told its id then.
  void tell(const std::string& name, const std::string& id);
  Counts counts() const { return counts_; }
  // A connection to somebody who posts by TLS, in place of the one before.
  void take_carrier(io::Socket carrier) { carrier_ = std::move(carrier); }
  // Until cancelled.
  io::Task<> run();

 private:
  struct Denial {
    std::string name, id;
    WallTime time;
  };
  enum class Outcome { done, refused, again };
  bool is_repeated(const std::string& name, const std::string& id);
  io::Task<> deliver(Denial denial);
  io::Task<Outcome> post(std::string body);
  io::Task<Result<int>> exchange(std::string body);
  io::Task<Result<int>> exchange_by_carrier(IpAddress where, std::string body);
  io::Task<Result<IpAddress>> address();

  HostNetwork& network_;
  std::optional<sandbox::Webhook> hook_;
  Patience patience_;
  std::optional<io::Socket> carrier_;
  std::deque<Denial> queue_;
  std::map<std::pair<std::string, std::string>, std::chrono::steady_clock::time_point> told_;
  Counts counts_;
  io::Event news_;
};

}  // namespace osb::egress
