// Whether an ordinary user could run the service here, and with which ids. Tried as such a user also when
// root asks.

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/machine_probe.h"
#include "cli/probe_tools.h"
#include "sys/user_namespace.h"

namespace osb::cli {
namespace {

constexpr uid_t kNobody = 65534;

Result<void> become_ordinary() {
  if (::geteuid() != 0) return {};
  if (::setgroups(0, nullptr) < 0 || ::setresgid(kNobody, kNobody, kNobody) < 0 ||
      ::setresuid(kNobody, kNobody, kNobody) < 0) {
    return fail_errno("become an ordinary user");
  }
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // or the kernel would keep our own /proc from us
  return {};
}

// The overlay of the image `host` and a fresh /proc, which kernels and containers refuse for different
// reasons.
Result<std::string> rootless(const Machine&) {
  TRY(become_ordinary());
  struct passwd* account = ::getpwuid(::getuid());
  std::string one_id = TRY(sys::enter_user_namespace(account ? account->pw_name : ""));
  // Anywhere: it is covered in this mount namespace only.
  if (::mount("none", "/tmp", "tmpfs", 0, "size=64k") < 0 || ::chdir("/tmp") < 0)
    return fail_errno("mount tmpfs in a user namespace");
  for (const char* name : {"upper", "work", "root"}) {
    if (::mkdir(name, 0755) < 0) return fail_errno("mkdir");
  }
  if (::mount("none", "root", "overlay", 0, "lowerdir=/usr,upperdir=upper,workdir=work,userxattr,volatile") <
      0)
    return fail_errno("mount an overlay in a user namespace");
  TRY(write_file("root/osb-doctor", "x", O_CREAT));
  if (::unshare(CLONE_NEWPID | CLONE_NEWNET) < 0) return fail_errno("new pid and network namespaces");
  TRY(run_in_child([]() -> Result<std::string> {
    if (::mount("none", "upper", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0)
      return fail_errno("mount /proc in a user namespace");
    if (::mount("none", "upper", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0)
      return fail_errno("mount /sys in a user namespace");
    return "";
  }));
  if (one_id.empty())
    return fmt::format("an ordinary user can run the service, with {} ids", sys::mapped_ids());
  return "an ordinary user can run the service, with one id: " + one_id;
}

constexpr Probe kProbes[] = {
    {kRootlessProbe, Need::note, rootless, "only root can run the service",
     "allow user namespaces to ordinary users (sysctl kernel.unprivileged_userns_clone=1, "
     "user.max_user_namespaces, "
     "kernel.apparmor_restrict_unprivileged_userns=0); in a container start it with an unmasked /proc"},
};

}  // namespace

std::span<const Probe> rootless_probes() { return kProbes; }

}  // namespace osb::cli
