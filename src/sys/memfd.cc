#include "sys/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

namespace osb::sys {

Result<Fd> sealed_executable(const std::string& name, std::string_view bytes) {
  // Asked for outright: where vm.memfd_noexec is set, a file made without it cannot be executed.
  int fd = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  if (fd < 0 && errno == EINVAL)
    fd = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);  // before 6.3
  if (fd < 0) return fail_errno("memfd_create " + name);
  Fd memory(fd);
  TRY(write_all(fd, bytes));
  // Executable but not readable by others: the kernel then never lets a process of it be dumped or traced by
  // them.
  if (::fchmod(fd, 0711) < 0) return fail_errno("set the mode of " + name);
  const int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(fd, F_ADD_SEALS, seals | F_SEAL_EXEC) < 0 && ::fcntl(fd, F_ADD_SEALS, seals) < 0) {
    return fail_errno("seal " + name);
  }
  return memory;
}

}  // namespace osb::sys
