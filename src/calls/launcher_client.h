#pragma once

// A service's side of the launcher's socket: requests out, answers matched by their tag.

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "io/socket.h"
#include "launcher/messages/all.h"
#include "launcher/protocol.h"

namespace osb::calls {

using io::Task;

template <class Body>
struct Answered {
  Body body;
  std::vector<Fd> descriptors;  // at least as many as the answer has to have
};

// Belongs to one loop.
class LauncherClient {
 public:
  // `on_lost` is called once, when the launcher is gone: without it the server can do nothing.
  // `deadline` covers a host under load; a launcher that takes longer is stuck.
  LauncherClient(io::Executor executor, Fd channel, std::function<void()> on_lost,
                 io::Duration deadline = std::chrono::seconds(30));

  // Whether what is asked for now is with the launcher at once.
  bool has_room() const;
  // Reads answers until the launcher is gone. Spawned once by the owner.
  Task<> run();
  // The answer to a request of launcher/messages, or the launcher's error.
  // `deadline`: for what may take longer than everything else.
  template <class Request>
  Task<Result<Answered<typename Request::Answer>>> ask(Request request,
                                                       std::optional<io::Duration> deadline = {}) {
    using Body = typename Request::Answer;
    auto answer =
        CO_TRY(co_await call(Request::kVerb, launcher::encode_body(request), deadline.value_or(deadline_)));
    Answered<Body> answered{CO_TRY(launcher::decode_body<Body>(answer.body)), std::move(answer.descriptors)};
    if (answered.descriptors.size() < Body::kDescriptors)
      co_return fail(Code::internal,
                     "the launcher sent too few descriptors with " + std::string(Body::kName));
    co_return answered;
  }

 private:
  struct Pending {
    explicit Pending(const io::Executor& executor) : done(executor) {}
    io::Event done;
    Result<launcher::Answer> answer = fail(Code::unavailable, "the launcher is gone");
  };
  Task<Result<launcher::Answer>> call(launcher::Verb verb, std::string body, io::Duration deadline);
  Task<Result<void>> send(std::string bytes);

  io::Executor executor_;
  io::asio::posix::stream_descriptor channel_;
  std::function<void()> on_lost_;
  io::Duration deadline_;
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;
  // Starts anew with every server: an answer to an earlier one must match nothing here.
  uint64_t next_tag_ = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  bool lost_ = false;
};

}  // namespace osb::calls
