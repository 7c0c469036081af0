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

// Descriptors: a pidfd of the first process, then the sockets of its outlet (sys/outlet.h).
struct ListenersAnswer {
  static constexpr std::string_view kName = "the answer to listeners";
  static constexpr size_t kDescriptors = 3;
  std::string id;
  bool is_open = false;  // without a policy of its own the default one holds; else nothing leaves

  void write(ByteWriter& out) const {
    out.string(id);
    out.number(static_cast<uint8_t>(is_open));
  }
  void read(ByteReader& in) {
    id = in.string(kMaxIdBytes);
    auto flag = in.number<uint8_t>();
    if (flag > 1) in.fail();
    is_open = flag == 1;
  }
};

// Where arrives what the sandbox sends out; once for each life of the peer.
struct ListenersRequest : IdBody {
  static constexpr std::string_view kName = "listeners";
  static constexpr Verb kVerb = Verb::listeners;
  using Answer = ListenersAnswer;
};

// Answered when a sandbox whose listeners nobody has sends something: with these. One is asked at a time.
struct CallersRequest : Done {
  static constexpr std::string_view kName = "callers";
  static constexpr Verb kVerb = Verb::callers;
  using Answer = ListenersAnswer;
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

// Descriptors: one end of a pair of sockets (SOCK_SEQPACKET), the other is the process's.
struct ImagesAnswer : Done {
  static constexpr std::string_view kName = "the answer to images";
  static constexpr size_t kDescriptors = 1;
};

// A process that may write the store of images, for one order (registry/keeper_messages.h). A few at once;
// none without root.
struct ImagesRequest : Done {
  static constexpr std::string_view kName = "images";
  static constexpr Verb kVerb = Verb::images;
  using Answer = ImagesAnswer;
};

// An error when no sandbox could be made now.
struct HealthRequest : Done {
  static constexpr std::string_view kName = "health";
  static constexpr Verb kVerb = Verb::health;
  using Answer = Done;
};

}  // namespace osb::launcher
