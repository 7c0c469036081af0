#pragma once

// Ending sandboxes. Fine when there is none of that id.

#include "launcher/messages/body.h"

namespace osb::launcher {

// All processes are gone when it is answered; the files stay.
struct StopRequest : IdBody {
  static constexpr std::string_view kName = "stop";
  static constexpr Verb kVerb = Verb::stop;
  using Answer = Done;
};

// Everything is gone, or in the trash, where nobody finds it.
struct DestroyRequest : IdBody {
  static constexpr std::string_view kName = "destroy";
  static constexpr Verb kVerb = Verb::destroy;
  using Answer = Done;
};

}  // namespace osb::launcher
