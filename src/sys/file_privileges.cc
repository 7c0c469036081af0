#include "sys/file_privileges.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "sys/bpf.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

namespace osb::sys {
namespace {

constexpr uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

// Calls that have a mode as their second argument, and as their third.
constexpr uint32_t kSecond[] = {
#ifdef SYS_chmod
    SYS_chmod, SYS_creat, SYS_mkdir, SYS_mknod,
#endif
    SYS_fchmod};
constexpr uint32_t kThird[] = {SYS_fchmodat, SYS_fchmodat2, SYS_mkdirat, SYS_mknodat};

void append_modes(Bpf& bpf, std::span<const uint32_t> calls, int mode, Bpf::Label fine) {
  auto ours = bpf.label(), others = bpf.label();
  for (uint32_t call : calls.first(calls.size() - 1)) bpf.if_equal(call, ours);
  bpf.if_not_equal(calls.back(), others);
  bpf.place(ours);
  bpf.load(low_half(mode));
  bpf.if_no_bit(S_ISUID | S_ISGID, fine);
  bpf.answer(refuse(EPERM));
  bpf.place(others);
}

// Those that have one only when they make a file: otherwise there is anything in its place.
void append_open(Bpf& bpf, uint32_t call, int flags, Bpf::Label fine) {
  constexpr uint32_t kMakes = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
  auto others = bpf.label();
  bpf.if_not_equal(call, others);
  bpf.load(low_half(flags));
  bpf.if_no_bit(kMakes, fine);
  bpf.load(low_half(flags + 1));
  bpf.if_no_bit(S_ISUID | S_ISGID, fine);
  bpf.answer(refuse(EPERM));
  bpf.place(others);
}

bool sets_root(const struct stat& info) {
  bool user = (info.st_mode & S_ISUID) != 0 && info.st_uid == 0;
  return user || ((info.st_mode & S_ISGID) != 0 && info.st_gid == 0);
}

// 1 when it has capabilities.
int has_capabilities(int directory, const char* name) {
  int file = ::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return errno == ENOENT || errno == ELOOP ? 0 : -errno;
  ssize_t bytes = ::fgetxattr(file, "security.capability", nullptr, 0);
  int status = bytes >= 0 ? 1 : errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
  ::close(file);
  return status;
}

int look_at_file(int directory, const char* name) {
  struct stat info{};
  if (::fstatat(directory, name, &info, AT_SYMLINK_NOFOLLOW) < 0) return errno == ENOENT ? 0 : -errno;
  if (!S_ISREG(info.st_mode)) return 0;
  if (sets_root(info)) return -EPERM;
  if ((info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) return 0;
  int found = has_capabilities(directory, name);
  return found > 0 ? -EPERM : found;
}

int look_through(int directory, size_t depth, size_t& seen);

// -ENOTDIR when it is something else.
int look_below(int directory, const char* name, size_t depth, size_t& seen) {
  int below = ::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (below < 0) return errno == ENOENT ? 0 : errno == ELOOP ? -ENOTDIR : -errno;
  int status = look_through(below, depth + 1, seen);
  ::close(below);
  return status;
}

int look_at(int directory, const dirent64& entry, size_t depth, size_t& seen) {
  const char* name = entry.d_name;
  if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return 0;
  if (++seen > kMostLookedAt) return -E2BIG;
  if (entry.d_type == DT_REG) return look_at_file(directory, name);
  // Some file systems do not say what it is.
  if (entry.d_type != DT_DIR && entry.d_type != DT_UNKNOWN) return 0;
  int status = look_below(directory, name, depth, seen);
  return status == -ENOTDIR ? look_at_file(directory, name) : status;
}

int look_through(int directory, size_t depth, size_t& seen) {
  if (depth > kDeepestLookedAt) return -ELOOP;
  alignas(dirent64) char entries[8192];
  while (true) {
    long bytes = ::syscall(SYS_getdents64, directory, entries, sizeof entries);
    if (bytes <= 0) return bytes < 0 ? -errno : 0;
    for (long at = 0; at < bytes;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(entries + at);
      if (int status = look_at(directory, entry, depth, seen); status < 0) return status;
      at += entry.d_reclen;
    }
  }
}

}  // namespace

Result<std::vector<sock_filter>> refuse_privileged_modes() {
  Bpf bpf;
  auto fine = bpf.label();
  bpf.load(kCallNumber);
#ifdef SYS_open
  append_open(bpf, SYS_open, 1, fine);
#endif
  append_open(bpf, SYS_openat, 2, fine);
  auto unknown = bpf.label();
  bpf.if_equal(SYS_openat2, unknown);
  append_modes(bpf, kSecond, 1, fine);
  append_modes(bpf, kThird, 2, fine);
  bpf.place(fine);
  bpf.answer(SECCOMP_RET_ALLOW);
  bpf.place(unknown);
  bpf.answer(refuse(ENOSYS));
  return bpf.assemble();
}

int find_file_privileges(int directory) {
  int top = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (top < 0) return -errno;
  size_t seen = 0;
  int status = look_through(top, 0, seen);
  ::close(top);
  return status;
}

}  // namespace osb::sys
