#pragma once

// For unit tests: the other end of a LauncherClient's channel, which answers what the test says, in a thread
// of its own.

#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "launcher/messages/all.h"
#include "launcher/protocol.h"

namespace osb::runtime::testing {

class FakeLauncher {
 public:
  // Called for each request; whatever it sends on the socket is what the client hears. False: hangs up.
  using Script = std::function<bool(int socket, const launcher::Request& request)>;

  explicit FakeLauncher(Script script) {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) std::abort();
    theirs_ = Fd(pair[0]);
    thread_ =
        std::jthread([this, script = std::move(script), own = Fd(pair[1])] { serve(own.get(), script); });
  }

  // The client's end. The thread ends when that is closed.
  Fd channel() { return std::move(theirs_); }

  std::vector<launcher::Verb> asked() {
    MutexLock lock(mu_);
    return asked_;
  }

 private:
  void serve(int socket, const Script& script) {
    while (true) {
      struct pollfd ready{socket, POLLIN, 0};
      if (::poll(&ready, 1, -1) < 0) return;
      auto received = launcher::receive_message(socket);
      if (!received || received->bytes.empty()) return;
      auto request = launcher::decode_request(received->bytes);
      if (!request) return;
      {
        MutexLock lock(mu_);
        asked_.push_back(request->verb);
      }
      if (!script(socket, *request)) return;
    }
  }

  Fd theirs_;
  Mutex mu_;
  std::vector<launcher::Verb> asked_ OSB_GUARDED_BY(mu_);
  std::jthread thread_;  // last: it uses the others
};

template <class Body>
bool say(int socket, const launcher::Request& request, const Body& body, std::vector<Fd> descriptors = {}) {
  launcher::Answer answer;
  answer.tag = request.tag;
  answer.body = launcher::encode_body(body);
  return launcher::send_message(socket, launcher::encode_head(answer), descriptors).has_value();
}

inline bool say_bytes(int socket, const launcher::Request& request, std::string body,
                      std::vector<Fd> descriptors = {}) {
  launcher::Answer answer;
  answer.tag = request.tag;
  answer.body = std::move(body);
  return launcher::send_message(socket, launcher::encode_head(answer), descriptors).has_value();
}

inline bool say_error(int socket, const launcher::Request& request, Code code, std::string message) {
  launcher::Answer answer;
  answer.tag = request.tag;
  answer.error = EIO;
  answer.code = static_cast<uint32_t>(code);
  answer.message = std::move(message);
  return launcher::send_message(socket, launcher::encode_head(answer), {}).has_value();
}

}  // namespace osb::runtime::testing
