#pragma once

// Starting a process, fast: the child borrows this process's memory until it executes (clone with CLONE_VM),
// so nothing is copied, and what goes wrong before or at exec comes back in a shared variable. Everything the
// child needs is prepared beforehand; between clone and exec there are only plain system calls.
//
// The caller waits for that, but for a tenth of a second at most: between its birth and its program a child
// is one process of the sandbox among others, which may keep the processor from it or stop it. One that is
// late counts as started; when it cannot execute its program after all it ends with code 127.
//
// The child gets default signal dispositions, an empty signal mask, the open-files limit that execd was
// started with, and no descriptor that is not named here. Callers belong to one thread.

#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace osb::execd {

struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

enum class Group {
  own,       // leader of a new process group, in execd's session
  session,   // leader of a new session
  terminal,  // leader of a new session whose controlling terminal is its standard input
};

struct SpawnRequest {
  std::string program;  // the file to execute; "" looks argv[0] up in the PATH of `env`
  std::vector<std::string> argv;
  std::vector<std::string> env;           // "NAME=value"
  std::string cwd;                        // "" leaves it
  int in = -1, out = -1, err = -1;        // borrowed; -1 is /dev/null
  std::vector<std::pair<int, int>> more;  // further descriptors: ours, the child's (3 or more)
  Group group = Group::own;
  std::optional<Credentials> credentials;
  // Descendants whose own parents end become its children, not ours, as long as it lives: so they can be
  // found.
  bool gathers_orphans = false;
};

struct SpawnError {
  int code = 0;         // errno
  std::string path;     // what could not be executed or entered
  std::string message;  // a sentence for people
};

std::expected<pid_t, SpawnError> spawn(SpawnRequest request);

// Called once at start: where children go before they are programs. `work_group` takes the thread that writes
// "0" to it, -1: they stay in the group of this process.
void place_children(int work_group, std::optional<int> nice);

// Called once at start by one that takes short turns (sys/short_turns.h): its children do not.
void give_usual_turns();

// Under a kernel that does not tell when a child leaves our memory by exec: this process stands still until
// then. Whoever stops a child at that moment stops the daemon, and with it nobody but the sandbox.
void let_kernel_wait();

// Called once at start, before the limit of open files is raised; children get this one back.
void remember_open_files_limit();
// Children get this one instead.
void limit_open_files(uint64_t most);
// How many files a child may have open.
uint64_t open_files_limit();

// The files that executing `name` may try, in order.
std::vector<std::string> executable_candidates(const std::string& name, const std::vector<std::string>& env);

}  // namespace osb::execd
