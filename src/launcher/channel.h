#pragma once

// The launcher's end of a peer's socket: what the peer may ask for, and the answers it has not taken yet.
//
// While there are such answers no request is read: what a peer can make the launcher hold is bounded by what
// is under way at once.

#include <deque>
#include <optional>
#include <string>

#include "base/fd.h"
#include "launcher/messages/verb.h"
#include "launcher/protocol.h"

namespace osb::launcher {

class Channel {
 public:
  Channel(std::string peer, VerbSet allowed, Fd socket)
      : peer_(std::move(peer)), allowed_(allowed), socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }

  // The next request that the peer may make; nothing when none is there. A request for which it has no right
  // is answered here, and is none. Code::unavailable: the peer has closed its end; other errors: it does not
  // speak as it should.
  Result<std::optional<Request>> receive();

  // Sends what the peer takes; the rest waits for flush(). An error: the peer gets no more.
  Result<void> answer(Answer answer);
  Result<void> flush();

  // What to wait for in the socket, as epoll says it. `busy`: no more requests for now.
  uint32_t interest(bool busy) const;

 private:
  std::string peer_;  // its name, for messages
  VerbSet allowed_;
  Fd socket_;
  std::deque<Answer> unsent_;
};

}  // namespace osb::launcher
