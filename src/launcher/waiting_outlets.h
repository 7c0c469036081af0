#pragma once

// The ways out of sandboxes at which nobody listens yet. Most sandboxes never use theirs, so the egress
// process hears of one when something first arrives there, not when the sandbox is made.
//
// Belongs to the launcher's thread.

#include <map>
#include <optional>
#include <string>

#include "sys/outlet.h"

namespace osb::launcher {

class WaitingOutlets {
 public:
  static Result<WaitingOutlets> open();

  // Readable while something has arrived at one that is watched.
  int fd() const { return epoll_.get(); }
  // The id of such a one; it stays until it is taken.
  std::optional<std::string> next() const;

  // Whether what arrives is told. Of a sandbox whose policy is not there yet it is not: it waits.
  enum class Watched { no, yes };
  void put(const std::string& id, sys::Outlet outlet, Watched watched);
  bool contains(const std::string& id) const { return outlets_.contains(id); }
  // Empty when there is none.
  sys::Outlet take(const std::string& id);

 private:
  struct Waiting {
    uint64_t serial = 0;
    sys::Outlet sockets;
    Watched watched = Watched::no;
  };

  Fd epoll_;
  uint64_t last_serial_ = 0;
  std::map<std::string, Waiting> outlets_;
  std::map<uint64_t, std::string> ids_;  // by serial, of those that are watched
};

}  // namespace osb::launcher
