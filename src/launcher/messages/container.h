#pragma once

// Another engine on this host, and a container that it has made for a sandbox with a policy.

#include "launcher/messages/body.h"

namespace osb::launcher {

// Its network, which leads nowhere, gets an outlet: who may have `listeners` gets them from now on, also from
// later launchers, until the process is gone or the id is destroyed.
struct ContainerRequest {
  static constexpr std::string_view kName = "container";
  static constexpr Verb kVerb = Verb::container;
  using Answer = Done;
  std::string id;
  std::string container;  // the engine's id of it
  int64_t pid = 0;        // of its first process

  void write(ByteWriter& out) const {
    out.string(id);
    out.string(container);
    out.number(pid);
  }
  void read(ByteReader& in) {
    id = in.string(kMaxIdBytes);
    container = in.string(kMaxIdBytes);
    pid = in.number<int64_t>();
  }
};

// Descriptors: a connection to the engine.
struct EngineAnswer : Done {
  static constexpr std::string_view kName = "the answer to engine";
  static constexpr size_t kDescriptors = 1;
};

// The one whose socket the launcher was started with: a request names none. For a server whose user may not
// connect to it. Code::exhausted: it has too many that wait; try again.
struct EngineRequest : Done {
  static constexpr std::string_view kName = "engine";
  static constexpr Verb kVerb = Verb::engine;
  using Answer = EngineAnswer;
};

}  // namespace osb::launcher
