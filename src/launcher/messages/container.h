#pragma once

// A container that another engine has made on this host, for a sandbox with a policy.

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

}  // namespace osb::launcher
