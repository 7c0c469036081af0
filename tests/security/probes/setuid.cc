#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tools.h"

namespace osb::probe {

// What the marked copy runs: status 0 when executing it gave it anything.
int privileged() {
  __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  const bool known = ::syscall(SYS_capget, &head, sets) == 0;
  const bool capable =
      known && (sets[0].effective | sets[1].effective | sets[0].permitted | sets[1].permitted) != 0;
  return ::geteuid() == 0 || capable ? 0 : EPERM;
}

namespace {

bool copy_self(const std::string& to) {
  File from = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  File copy = ::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
  struct stat about;
  if (!from.ok() || !copy.ok() || ::fstat(from.fd(), &about) < 0) return false;
  off_t at = 0;
  while (at < about.st_size)
    if (::sendfile(copy.fd(), from.fd(), &at, static_cast<size_t>(about.st_size - at)) <= 0) return false;
  return ::fchmod(copy.fd(), 0755) == 0;
}

// As an ordinary user, through the program: 0 when it came out with privileges.
long execute_as_nobody(const std::string& program) {
  const uid_t nobody = 65534;
  if (::setgroups(0, nullptr) < 0 || ::setresgid(nobody, nobody, nobody) < 0 ||
      ::setresuid(nobody, nobody, nobody) < 0)
    return -1;
  ::execl(program.c_str(), "osb-probe", "privileged", nullptr);
  return -1;
}

void run(Attempts& a, Args) {
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    a.stopped("no_new_privs is set");
  else
    a.got("no_new_privs is not set");
  Scratch scratch;
  const std::string program = scratch / "program";
  if (!scratch.ok() || !copy_self(program)) return;
  if (::chmod(program.c_str(), 04755) == 0)
    a.call("execve(2)", "of a set-user-id program", in_child([&] { return execute_as_nobody(program); }));
  ::chmod(program.c_str(), 0755);
  vfs_cap_data all = {};
  all.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  all.data[0].permitted = 1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_SETUID;
  if (::setxattr(program.c_str(), "security.capability", &all, sizeof all, 0) == 0)
    a.call("execve(2)", "of a program with file capabilities",
           in_child([&] { return execute_as_nobody(program); }));
}

}  // namespace

extern const Probe probe_setuid = {
    "setuid", "gain privileges by executing set-user-id programs or programs with capabilities", nullptr,
    run};

}  // namespace osb::probe
