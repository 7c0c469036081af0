#pragma once

// A process that works on files which a sandbox wrote, and has no rights on the host: namespaces of its own
// with an empty root, ids of nobody else, six capabilities that hold for files of these ids only, a list of
// system calls, and the descriptors that it is given. With whoever started it it talks over one socket.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace osb::launcher {

inline constexpr uint32_t kConfinedIds = 0x1'0000;

struct ConfinedOrder {
  std::string place;        // an empty directory of the host, covered for a moment in a private namespace
  int user_namespace = -1;  // whose ids it has
  std::vector<int> directories;  // what it may work in
  // Descriptors of the directories in the same order, and of its end of the socket. Does not return to
  // anybody: what it has to say it says on the socket.
  std::function<void(const std::vector<int>& directories, int socket)> job;
};

struct ConfinedProcess {
  pid_t pid = -1;
  Fd socket;  // SOCK_SEQPACKET; the end of it is the end of the process
};

// As a child of the caller, that ends with it. The caller is single-threaded.
Result<ConfinedProcess> start_confined(const ConfinedOrder& order);
// Ends it, whatever it does.
void end_confined(ConfinedProcess& process);

// The files of a directory with its owners as ids of the namespace, for the process to read or to write.
Result<Fd> mapped_directory(int directory, int user_namespace);
Result<Fd> readable_directory(int directory);

}  // namespace osb::launcher
