#pragma once

// Things of this host that a sandbox must not reach, put up for the time of `osb doctor --attack`: an attempt
// that has nothing to aim at proves nothing. They hold no secret. The server is expected on the same host; of
// another host none of this can be reached anyway.

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "cli/probe_tools.h"

namespace osb::cli {

class Decoys {
 public:
  static Result<Decoys> create();
  Decoys(Decoys&&) = default;
  ~Decoys();

  // What an attempt takes as arguments; none for most. `neighbour` is the id of another sandbox, `own` that
  // of the one under attack, which may know it.
  std::vector<std::string> arguments_for(std::string_view attempt, const std::string& neighbour,
                                         const std::string& own) const;

 private:
  // System V's shared memory, which nobody takes away but by name.
  struct Segment {
    int id = -1, key = 0;
    Segment() = default;
    Segment(Segment&& other) noexcept : id(std::exchange(other.id, -1)), key(other.key) {}
  };

  explicit Decoys(ScratchDir directory) : directory_(std::move(directory)) {}

  ScratchDir directory_;
  std::string canary_, abstract_name_, victim_;
  Fd abstract_, socket_, tcp_;
  int port_ = 0;
  Segment segment_;
  std::vector<std::string> sockets_, names_;
};

// Paths of sockets in a text like /proc/net/unix, at most so many.
std::vector<std::string> socket_paths(std::string_view table, size_t most);

// What the sockets of sandboxes (…/<name>.api, …/<name>.control) are called after: names and directories, in
// no order.
std::vector<std::string> sandbox_names(const std::vector<std::string>& sockets);

}  // namespace osb::cli
