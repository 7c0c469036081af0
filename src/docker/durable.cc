#include "docker/durable.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>

#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::docker {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

// Belongs to the thread and to whoever waits: either may be gone first.
struct Sync {
  std::vector<Fd> files;
  Fd done = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<int> error = 0;
};

void run(Sync& sync) {
  int error = 0;
  for (const Fd& file : sync.files) {
    if (::fsync(file.get()) < 0) error = errno;
  }
  sync.error = error;
  ::eventfd_write(sync.done.get(), 1);
}

Result<void> begin(std::shared_ptr<Sync> sync) {
  try {
    std::thread([sync = std::move(sync)] { run(*sync); }).detach();
  } catch (const std::system_error& error) {
    return fail(Code::exhausted, std::string("no thread for the disk: ") + error.what());
  }
  return {};
}

io::Task<Result<void>> wait_for(std::shared_ptr<Sync> sync) {
  io::asio::posix::stream_descriptor done(co_await io::asio::this_coro::executor);
  CO_TRY(io::assign(done, Fd(::fcntl(sync->done.get(), F_DUPFD_CLOEXEC, 0))));
  CO_TRY(co_await io::wait_readable(done));
  if (sync->error != 0) co_return fail_errno("bring files to the disk", sync->error);
  co_return Result<void>();
}

}  // namespace

io::Task<Result<void>> bring_to_disk(std::vector<Fd> files) {
  auto sync = std::make_shared<Sync>();
  if (!sync->done.valid()) co_return fail_errno("eventfd");
  sync->files = std::move(files);
  CO_TRY(begin(sync));
  co_return co_await io::with_deadline(kPatience, "the disk of the state directory", wait_for(sync));
}

}  // namespace osb::docker
