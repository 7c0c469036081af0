#pragma once

// The process that touches hostile bytes.
//
// It is born root in fresh mount, pid, network, ipc and host-name namespaces, makes one directory its whole
// file system, enters a user namespace whose ids belong to nobody on the host, and keeps of root's rights
// only those over files of that directory. The directory is seen through an id-mapped mount: what the worker
// writes as its user 0 is user 0 on disk, which is how layers are kept.
//
// The caller does not trust what comes back: it is text of bounded length.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace osb::image {

// Ids of workers: the 65536 below those of the sandboxes.
inline constexpr uint32_t kWorkerFirstId = 0x6fff'0000;
inline constexpr uint32_t kWorkerIds = 0x1'0000;

// How a worker speaks: lines on a pipe.
class WorkerReport {
 public:
  explicit WorkerReport(int fd) : fd_(fd) {}
  void progress(uint64_t bytes, uint64_t entries);
  // Whichever of these comes first is the outcome.
  void result(std::string_view text);
  void failure(const Error& error);

 private:
  void line(char kind, std::string_view text);
  int fd_;
};

struct WorkerOrder {
  std::string directory;        // becomes its whole file system
  bool read_only = false;       // it may change nothing there
  int input = -1;               // what it reads, or writes its result to
  uint64_t max_file_bytes = 0;  // of one file
  // Runs confined, single-threaded at first. What it captures is a copy of the caller's memory.
  std::function<void(int input, int directory, WorkerReport& report)> job;
};

// What the caller is told while it waits, and how it says that it does not want to wait any longer.
struct WorkerWatch {
  std::function<void(uint64_t bytes, uint64_t entries)> progress;
  int cancel_fd = -1;  // readable: give up
};

// Waits for the worker's end; the text of result(), or the failure. Code::cancelled. The caller is root and
// has one thread.
Result<std::string> run_worker(const WorkerOrder& order, const WorkerWatch& watch);

}  // namespace osb::image
