#pragma once

// What happens to containers, told by the engine when it happens: one connection on which a line comes for
// each event, for as long as it holds. What happened before it was opened, or while there was none, is not
// told.

#include "docker/answers.h"
#include "docker/engine_link.h"

namespace osb::docker {

class EventStream {
 public:
  explicit EventStream(Link link) : link_(std::move(link)) {}
  // However long that takes. Events of which nobody wants to know are left out. Code::unavailable: the stream
  // has ended; Code::corrupt: it is none.
  Task<Result<EngineEvent>> next();

 private:
  Link link_;
  std::string text_;  // what came behind the last line
};

}  // namespace osb::docker
