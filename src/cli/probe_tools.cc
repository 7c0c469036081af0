#include "cli/probe_tools.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/machine_probe.h"

namespace osb::cli {

Result<ScratchDir> ScratchDir::create(const std::string& parent) {
  std::string path = parent + "/.osb-doctor-XXXXXX";
  if (!::mkdtemp(path.data())) return fail_errno("make a directory in " + parent);
  return ScratchDir(std::move(path));
}

ScratchDir::~ScratchDir() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Result<std::string> ScratchDir::add(const std::string& name) const {
  std::string path = path_ + "/" + name;
  if (::mkdir(path.c_str(), 0755) < 0) return fail_errno("mkdir " + path);
  return path;
}

Result<std::string> with_private_mounts(const std::string& parent, const MountBody& body) {
  auto scratch = TRY(ScratchDir::create(parent));
  return run_in_child([&]() -> Result<std::string> {
    if (::unshare(CLONE_NEWNS) < 0) return fail_errno("new mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0)
      return fail_errno("make mounts private");
    return body(scratch);
  });
}

Result<int> exit_status_of(const std::function<int()>& body) {
  pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) ::_exit(body());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail_errno("waitpid");
  }
  if (WIFSIGNALED(status))
    return fail(Code::internal, std::string("killed: ") + ::strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status);
}

Result<Fd> mapped_user_namespace() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd ready(ends[0]), tell(ends[1]);
  pid_t holder = ::fork();
  if (holder < 0) return fail_errno("fork");
  if (holder == 0) {
    int error = ::unshare(CLONE_NEWUSER) < 0 ? errno : 0;
    if (::write(tell.get(), &error, sizeof error) != sizeof error) ::_exit(1);
    for (;;) ::pause();
  }
  tell.reset();
  auto map = [&]() -> Result<Fd> {
    int error = EPIPE;
    if (::read(ready.get(), &error, sizeof error) != sizeof error) return fail(Code::internal, "no answer");
    if (error) return fail_errno("new user namespace", error);
    std::string proc = fmt::format("/proc/{}/", holder);
    std::string line = fmt::format("0 {} 65536\n", kProbeFirstId);
    TRY(in_context("write uid_map", write_file(proc + "uid_map", line)));
    TRY(in_context("write gid_map", write_file(proc + "gid_map", line)));
    return open_at(AT_FDCWD, proc + "ns/user", O_RDONLY);
  };
  auto space = map();
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  return space;
}

}  // namespace osb::cli
