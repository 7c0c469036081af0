#pragma once

// What is asked about a sandbox that runs, and about the launcher itself.

#include "launcher/messages/body.h"

namespace osb::launcher {

// Descriptors: as many as were asked for.
struct SocketsAnswer : Done {
  static constexpr std::string_view kName = "the answer to sockets";
  static constexpr size_t kDescriptors = 1;
};

// Unconnected TCP sockets inside the sandbox's network; at most kMaxDescriptors.
struct SocketsRequest {
  static constexpr std::string_view kName = "sockets";
  static constexpr Verb kVerb = Verb::sockets;
  using Answer = SocketsAnswer;
  std::string id;
  uint32_t count = 0;

  void write(ByteWriter& out) const {
    out.string(id);
    out.number(count);
  }
  void read(ByteReader& in) {
    id = in.string(kMaxIdBytes);
    count = in.number<uint32_t>();
  }
};

struct OomsAnswer {
  static constexpr std::string_view kName = "the answer to ooms";
  static constexpr size_t kDescriptors = 0;
  int64_t count = 0;

  void write(ByteWriter& out) const { out.number(count); }
  void read(ByteReader& in) { count = in.number<int64_t>(); }
};

// How many processes of it the kernel has killed for lack of memory.
struct OomsRequest : IdBody {
  static constexpr std::string_view kName = "ooms";
  static constexpr Verb kVerb = Verb::ooms;
  using Answer = OomsAnswer;
};

// An error when no sandbox could be made now.
struct HealthRequest : Done {
  static constexpr std::string_view kName = "health";
  static constexpr Verb kVerb = Verb::health;
  using Answer = Done;
};

}  // namespace osb::launcher
