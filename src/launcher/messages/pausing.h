#pragma once

// Stopping the processes of a sandbox and letting them go on.

#include "launcher/messages/body.h"

namespace osb::launcher {

// Answered when no process of it runs any more.
struct FreezeRequest : IdBody {
  static constexpr std::string_view kName = "freeze";
  static constexpr Verb kVerb = Verb::freeze;
  using Answer = Done;
};

struct ThawAnswer {
  static constexpr std::string_view kName = "the answer to thaw";
  static constexpr size_t kDescriptors = 0;
  bool was_frozen = false;  // or about to be

  void write(ByteWriter& out) const { out.flag(was_frozen); }
  void read(ByteReader& in) { was_frozen = in.flag(); }
};

struct ThawRequest : IdBody {
  static constexpr std::string_view kName = "thaw";
  static constexpr Verb kVerb = Verb::thaw;
  using Answer = ThawAnswer;
};

}  // namespace osb::launcher
