#pragma once

// The keeper's side of a fetcher: starts it without any right, and ends it.

#include <sys/types.h>

#include <vector>

#include "base/fd.h"

namespace osb::registry {

// Nobody's: right below the ids of the workers that unpack (image/worker.h).
inline constexpr uint32_t kFetcherId = 0x6ffe'ffff;

class FetcherProcess {
 public:
  // `directory` is what it may write, `files` what it may read; `executable` is this program. It ends with
  // the caller.
  static Result<FetcherProcess> start(int executable, int directory, const std::vector<int>& files = {});
  FetcherProcess(FetcherProcess&& other) noexcept
      : socket_(std::move(other.socket_)), pid_(std::exchange(other.pid_, -1)) {}
  ~FetcherProcess();

  int socket() const { return socket_.get(); }

 private:
  FetcherProcess(Fd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}
  Fd socket_;
  pid_t pid_;
};

}  // namespace osb::registry
