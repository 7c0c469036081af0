#include "docker/patient_look_up.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "base/mutex.h"
#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::docker {
namespace {

constexpr int kMostThreads = 16;
std::atomic<int> threads = 0;

// Belongs to the thread and to whoever waits: either may be gone first.
struct LookUp {
  std::vector<std::string> allowed;
  std::string state_dir, path;
  Missing missing;
  HostPathLookUp look;
  Fd done;
  Mutex mu_;
  std::optional<Result<FileId>> result OSB_GUARDED_BY(mu_);
};

void run(const std::shared_ptr<LookUp>& look_up) {
  auto found = look_up->look(look_up->allowed, look_up->state_dir, look_up->path, look_up->missing);
  {
    MutexLock lock(look_up->mu_);
    look_up->result = std::move(found);
  }
  ::eventfd_write(look_up->done.get(), 1);
  --threads;
}

Result<void> begin(std::shared_ptr<LookUp> look_up) {
  if (++threads > kMostThreads) {
    --threads;
    return fail(Code::unavailable,
                "too many directories of the host do not answer; look at the file systems of "
                "storage.allowed_host_paths");
  }
  try {
    std::thread([look_up = std::move(look_up)] { run(look_up); }).detach();
  } catch (const std::system_error& error) {
    --threads;
    return fail(Code::exhausted, std::string("no thread for a look-up: ") + error.what());
  }
  return {};
}

io::Task<Result<FileId>> wait_for(std::shared_ptr<LookUp> look_up) {
  io::asio::posix::stream_descriptor done(co_await io::asio::this_coro::executor);
  Fd copy(::fcntl(look_up->done.get(), F_DUPFD_CLOEXEC, 0));
  CO_TRY(io::assign(done, std::move(copy)));
  while (true) {
    {
      MutexLock lock(look_up->mu_);
      if (look_up->result) co_return std::move(*look_up->result);
    }
    if (!co_await io::wait_readable(done)) co_return fail(Code::cancelled, "nobody waits any more");
  }
}

}  // namespace

io::Task<Result<FileId>> look_up_patiently(std::vector<std::string> allowed, std::string state_dir,
                                           std::string path, Missing missing, io::Duration patience,
                                           HostPathLookUp look) {
  auto look_up = std::make_shared<LookUp>();
  look_up->allowed = std::move(allowed);
  look_up->state_dir = std::move(state_dir);
  look_up->path = std::move(path);
  look_up->missing = missing;
  look_up->look = look;
  look_up->done = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!look_up->done.valid()) co_return fail_errno("eventfd");
  CO_TRY(begin(look_up));
  co_return co_await io::with_deadline(patience, "the directory of the host", wait_for(look_up));
}

}  // namespace osb::docker
