#include "image/pack.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "image/libraries.h"
#include "image/tree_packer.h"
#include "sys/caps.h"

namespace osb::image {
namespace {

constexpr size_t kBlock = 256 << 10;

[[noreturn]] void run_packer(int directory, int stream, int errors, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  // From here on: may read any file of the host, and change none.
  if (sys::set_capabilities({CAP_DAC_READ_SEARCH}) < 0) ::_exit(1);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  auto packed = pack(directory, stream);
  if (packed) ::_exit(0);
  (void)write_all(errors, packed.error().message);
  ::_exit(1);
}

}  // namespace

Result<void> pack(int directory, int out) {
  const Libraries& lib = libraries();
  std::unique_ptr<struct archive, decltype(lib.archive_write_free)> writer(lib.archive_write_new(),
                                                                           lib.archive_write_free);
  lib.archive_write_set_format_pax_restricted(writer.get());
  lib.archive_write_set_bytes_per_block(writer.get(), static_cast<int>(kBlock));
  if (lib.archive_write_open_fd(writer.get(), out) != ARCHIVE_OK)
    return fail(Code::internal, "cannot open a tar stream");
  TRY(pack_tree(writer.get(), directory, {}));
  if (lib.archive_write_close(writer.get()) != ARCHIVE_OK)
    return fail(Code::internal, "cannot end the tar stream");
  return {};
}

Result<Packer> Packer::start(const std::string& directory) {
  Fd dir = TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY));
  int stream[2], errors[2];
  if (::pipe2(stream, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd stream_read(stream[0]), stream_write(stream[1]);
  if (::pipe2(errors, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd errors_read(errors[0]), errors_write(errors[1]);
  (void)::fcntl(stream[1], F_SETPIPE_SZ, 1 << 20);
  pid_t parent = ::getpid();
  pid_t pid = ::fork();
  if (pid == 0) {
    // Whoever reads the stream must see its end when this process ends, and the other way round.
    stream_read.reset();
    errors_read.reset();
    run_packer(dir.get(), stream[1], errors[1], parent);
  }
  if (pid < 0) return fail_errno("fork the packer");
  return Packer(pid, std::move(stream_read), std::move(errors_read));
}

Packer::~Packer() {
  if (!errors_.valid()) return;  // moved from, or finished
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<void> Packer::finish() {
  stream_.reset();
  std::string message = read_all(errors_.get(), 16 << 10).value_or("");
  errors_.reset();
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(Code::internal, message.empty() ? "the directory could not be read to its end" : message);
}

}  // namespace osb::image
