#pragma once

// Containers that another engine has made for sandboxes with a policy: their network has nothing but a
// loopback, and gets the outlet that a native sandbox has. The server says which process is a container's
// first one and is not believed: it has to be in that container's group, and the network must be one in which
// nothing was set up. So the host's own, a native sandbox's and a connected container's are out of reach.
//
// What is known is a note on the disk, by which a later launcher finds the process again.
//
// Belongs to the launcher's thread.

#include <map>
#include <set>
#include <string>

#include "launcher/sandbox_table.h"
#include "sys/outlet.h"

namespace osb::launcher {

class Containers {
 public:
  // `directory` is made if it is missing. Notes of processes that are gone are removed.
  static Result<Containers> open(const std::string& directory);

  // `home`: the launcher's own network namespace. Code::permission_denied: it is not what it should be.
  Result<void> add(const std::string& id, const std::string& container, int64_t pid, int home);
  bool contains(const std::string& id) const;
  // Once until nobody_listens(); Code::not_found: it is gone.
  Result<Listeners> listeners(const std::string& id, int home);
  void nobody_listens() { heard_.clear(); }
  // Fine when there is none.
  void remove(const std::string& id);

 private:
  struct Note;
  struct Process;
  Result<void> forget_ended();
  Result<void> write(const std::string& id, const Note& note);
  Result<Note> read(const std::string& id) const;
  static Result<Process> find(const Note& note);

  Fd directory_;
  size_t count_ = 0;                           // of notes, those of ended ones among them
  std::map<std::string, sys::Outlet> opened_;  // that nobody has asked for yet
  std::set<std::string> heard_;                // whose outlets the egress process has
};

}  // namespace osb::launcher
