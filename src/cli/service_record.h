#pragma once

// Which service of this user runs in the background: a file that the service writes itself before anybody can
// connect, so that a starter which is killed leaves none that nobody knows. The process is what counts; a
// file that outlived it says nothing.

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"

namespace osb::cli {

struct ServiceRecord {
  pid_t pid = 0;
  std::string started;  // in clock ticks since boot: tells it from a stranger that got the same number
  uint16_t port = 0;    // 0 where the configuration says it
  std::string key = {};
};

// When a process began; "" when there is no such process, or only its remains.
std::string start_of(pid_t pid);
inline bool is_alive(const ServiceRecord& record) { return start_of(record.pid) == record.started; }

// Nothing when there is none, or its process has ended.
std::optional<ServiceRecord> read_record(const std::string& path);
// Of the process that calls it. Whole or not at all.
Result<void> write_own_record(const std::string& path, uint16_t port, const std::string& key);
// SIGTERM, and the wait for its end: Code::timeout.
Result<void> end_service(const ServiceRecord& record, std::chrono::seconds patience);

// The only one that starts or ends a service. Held by whoever has the descriptor, also after a fork.
Result<std::optional<Fd>> try_lock(const std::string& path);

}  // namespace osb::cli
