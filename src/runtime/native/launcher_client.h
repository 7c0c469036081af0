#pragma once

// The server's side of the launcher's socket: requests out, answers matched by their tag.

#include <functional>
#include <map>
#include <memory>

#include "io/socket.h"
#include "launcher/protocol.h"

namespace osb::runtime {

using io::Task;

// Belongs to one loop.
class LauncherClient {
 public:
  // `on_lost` is called once, when the launcher is gone: without it the server can do nothing.
  LauncherClient(io::Executor executor, Fd channel, std::function<void()> on_lost);

  // Reads answers until the launcher is gone. Spawned once by the owner.
  Task<> run();
  // The body and descriptors of the answer, or the launcher's error.
  Task<Result<launcher::Answer>> call(launcher::Verb verb, std::string body);

 private:
  struct Pending {
    explicit Pending(const io::Executor& executor) : done(executor) {}
    io::Event done;
    Result<launcher::Answer> answer = fail(Code::unavailable, "the launcher is gone");
  };
  Task<Result<void>> send(std::string bytes);

  io::Executor executor_;
  io::asio::posix::stream_descriptor channel_;
  std::function<void()> on_lost_;
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;
  // Starts anew with every server: an answer to an earlier one must match nothing here.
  uint64_t next_tag_ = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  bool lost_ = false;
};

}  // namespace osb::runtime
