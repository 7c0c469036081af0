#pragma once

// Netlink requests as bytes: messages with attributes, several of them in one buffer, sent and acknowledged
// together. For what has no other interface (addresses, routes, packet rules); the static executables have no
// library for it.

#include <linux/netlink.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::sys {

class NetlinkBatch {
 public:
  // Begins a message. `head` is what follows the netlink header: an ifaddrmsg, an rtmsg, an nfgenmsg.
  template <class Head>
  void begin(uint16_t type, uint16_t flags, const Head& head) {
    begin_message(type, flags, {reinterpret_cast<const char*>(&head), sizeof head});
  }
  void end();

  void attribute(uint16_t type, std::string_view bytes);
  void text(uint16_t type, std::string_view text);  // with its zero
  void number(uint16_t type, uint32_t value);       // in the machine's order
  void big_number(uint16_t type, uint32_t value);   // in the network's
  // Attributes that hold others.
  size_t begin_nested(uint16_t type);
  void end_nested(size_t where);

  // Sends all messages and waits for the answers to those that asked for one. The first error that the kernel
  // reports.
  Result<void> transact(int protocol, std::string_view what) const;

 private:
  void begin_message(uint16_t type, uint16_t flags, std::string_view head);
  void pad();

  std::string bytes_;
  size_t message_ = 0;    // where the one that is open begins
  uint32_t waiting_ = 0;  // answers to come
  uint32_t sequence_ = 0;
};

}  // namespace osb::sys
