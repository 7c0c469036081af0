#pragma once

// One connection to a Redis server: one command at a time, each with a deadline. After an error it is of no
// use any more. Belongs to one loop.

#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "io/socket.h"
#include "server/redis_address.h"
#include "server/redis_reply.h"
#include "tls/stream.h"

namespace osb::server {

class RedisClient {
 public:
  // Connected and logged in, with its database chosen. Code::permission_denied when the login is refused,
  // Code::unavailable (also when its certificate is not accepted), Code::timeout.
  static io::Task<Result<RedisClient>> open(RedisAddress address);

  // An error that the server tells is one of these, with the first word of what it says.
  io::Task<Result<RedisReply>> ask(std::string command, io::Duration limit);

 private:
  // One of the two.
  using Link = std::variant<io::Socket, tls::Stream>;
  explicit RedisClient(Link link) : link_(std::move(link)) {}
  static io::Task<Result<Link>> connect(RedisAddress address);
  io::Task<Result<RedisReply>> exchange(std::string command);

  Link link_;
  std::string received_;
};

}  // namespace osb::server
