#include <linux/fs.h>
#include <sys/ioctl.h>

#include "tools.h"

namespace osb::probe {
namespace {

// ENOTTY says that this file system has no such request for anybody.
void attempt(Attempts& a, const char* request, const std::string& path, Answer answer) {
  const std::string variant = std::string(request) + " of " + path;
  answer.error == ENOTTY ? a.call("ioctl(2)", variant, answer) : a.gate("ioctl(2)", variant, answer);
}

// Thawing what is not frozen and trimming nothing: past the privilege check there is only an error.
void whole_file_system(Attempts& a, const std::string& path) {
  File file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (!file.ok()) return;
  attempt(a, "FITHAW", path, ::ioctl(file.fd(), FITHAW, 0));
  fstrim_range nothing = {};
  attempt(a, "FITRIM", path, ::ioctl(file.fd(), FITRIM, &nothing));
}

// A file that nobody can remove would stay on the host for ever.
void make_immutable(Attempts& a) {
  Scratch scratch;
  if (!scratch.ok()) return;
  File file = ::open((scratch / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  int flags = 0;
  if (::ioctl(file.fd(), FS_IOC_GETFLAGS, &flags) < 0) return void(a.call("ioctl(2)", "FS_IOC_GETFLAGS", -1));
  for (const int flag : {FS_IMMUTABLE_FL, FS_APPEND_FL}) {
    const int marked = flags | flag;
    if (a.call("ioctl(2)", flag == FS_APPEND_FL ? "append-only file" : "immutable file",
               ::ioctl(file.fd(), FS_IOC_SETFLAGS, &marked)))
      ::ioctl(file.fd(), FS_IOC_SETFLAGS, &flags);
  }
}

void run(Attempts& a, Args) {
  for (const char* path : {"/", "/usr", "/etc/hosts", "/tmp"}) whole_file_system(a, path);
  make_immutable(a);
}

}  // namespace

extern const Probe probe_fs_ioctls = {
    "fs_ioctls", "freeze or trim the file system below, or leave files that cannot be removed", nullptr, run};

}  // namespace osb::probe
