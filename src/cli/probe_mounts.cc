// Probes of what a sandbox's file tree is made of: namespaces, overlay, id mapping, a root of its own.

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/machine_probe.h"
#include "cli/probe_tools.h"

namespace osb::cli {
namespace {

Result<std::string> user_namespace(const Machine&) {
  TRY(mapped_user_namespace());
  return fmt::format("ids 0-65535 mapped to {}-{}", kProbeFirstId, kProbeFirstId + 65535);
}

Result<std::string> new_mount_api(const Machine& machine) {
  return with_private_mounts(machine.work_dir, [](const ScratchDir& scratch) -> Result<std::string> {
    Fd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
    if (!context.valid()) return fail_errno("fsopen tmpfs");
    if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", "64k", 0) < 0)
      return fail_errno("fsconfig size");
    if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
      return fail_errno("fsconfig create");
    Fd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID));
    if (!mount.valid()) return fail_errno("fsmount");
    if (::move_mount(mount.get(), "", AT_FDCWD, scratch.path().c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0) {
      return fail_errno("move_mount");
    }
    TRY(write_file(scratch.path() + "/file", "x", O_CREAT));
    return "mounts made detached, then attached";
  });
}

// The merged directory of `lower` and an upper in `scratch`.
Result<std::string> mount_overlay(const ScratchDir& scratch, const std::string& lower) {
  auto upper = TRY(scratch.add("upper"));
  auto work = TRY(scratch.add("work"));
  auto merged = TRY(scratch.add("merged"));
  std::string options = fmt::format("lowerdir={},upperdir={},workdir={},volatile", lower, upper, work);
  if (::mount("overlay", merged.c_str(), "overlay", 0, options.c_str()) < 0)
    return fail_errno("mount overlay");
  return merged;
}

Result<std::string> overlay(const Machine& machine) {
  return with_private_mounts(machine.work_dir, [&](const ScratchDir& scratch) -> Result<std::string> {
    auto lower = TRY(scratch.add("lower"));
    TRY(write_file(lower + "/file", "lower", O_CREAT));
    auto merged = TRY(mount_overlay(scratch, lower));
    TRY(in_context("write through the overlay", write_file(merged + "/file", "upper", O_TRUNC)));
    if (TRY(read_file(lower + "/file")) != "lower")
      return fail(Code::corrupt, "the write reached the lower layer");
    return "writes go to the sandbox's own layer in " + machine.work_dir;
  });
}

Result<std::string> idmapped_lower(const Machine& machine) {
  return with_private_mounts(machine.work_dir, [](const ScratchDir& scratch) -> Result<std::string> {
    auto space = TRY(mapped_user_namespace());
    auto lower = TRY(scratch.add("lower"));
    Fd tree(::open_tree(AT_FDCWD, "/usr", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
    if (!tree.valid()) return fail_errno("open_tree /usr");
    struct mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY;
    attributes.userns_fd = static_cast<uint64_t>(space.get());
    if (::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0) {
      return fail_errno("map the ids of /usr");
    }
    if (::move_mount(tree.get(), "", AT_FDCWD, lower.c_str(), MOVE_MOUNT_F_EMPTY_PATH) < 0) {
      return fail_errno("move_mount");
    }
    auto merged = TRY(mount_overlay(scratch, lower));
    struct stat seen{};
    if (::stat((merged + "/bin").c_str(), &seen) < 0) return fail_errno("stat");
    if (seen.st_uid != kProbeFirstId)
      return fail(Code::unsupported, fmt::format("its owner is still {}", seen.st_uid));
    TRY(write_file(merged + "/osb-doctor", "x", O_CREAT));
    return fmt::format("root of an image is host id {}", kProbeFirstId);
  });
}

Result<std::string> own_root(const Machine& machine) {
  return with_private_mounts(machine.work_dir, [](const ScratchDir& scratch) -> Result<std::string> {
    const char* root = scratch.path().c_str();
    if (::mount("osb", root, "tmpfs", 0, "size=64k") < 0) return fail_errno("mount tmpfs");
    if (::chdir(root) < 0) return fail_errno("chdir");
    if (::syscall(SYS_pivot_root, ".", ".") < 0) return fail_errno("pivot_root");
    if (::umount2(".", MNT_DETACH) < 0) return fail_errno("unmount the old root");
    if (::access("/usr", F_OK) == 0) return fail(Code::internal, "the old root is still there");
    return "nothing of the host's tree is left";
  });
}

Result<std::string> fresh_proc(const Machine& machine) {
  return with_private_mounts(machine.work_dir, [](const ScratchDir& scratch) -> Result<std::string> {
    if (::unshare(CLONE_NEWPID) < 0) return fail_errno("new pid namespace");
    return run_in_child([&]() -> Result<std::string> {
      const char* where = scratch.path().c_str();
      if (::mount("proc", where, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) < 0)
        return fail_errno("mount proc");
      auto status = TRY(read_file(scratch.path() + "/1/status"));
      if (::getpid() != 1) return fail(Code::internal, "not the first process of its namespace");
      return "the sandbox sees only its own processes";
    });
  });
}

Result<std::string> reflink(const Machine& machine) {
  auto scratch = TRY(ScratchDir::create(machine.work_dir));
  auto from = TRY(open_at(AT_FDCWD, scratch.path() + "/a", O_RDWR | O_CREAT, 0600));
  auto to = TRY(open_at(AT_FDCWD, scratch.path() + "/b", O_RDWR | O_CREAT, 0600));
  TRY(write_all(from.get(), std::string(8192, 'x')));
  if (::ioctl(to.get(), FICLONE, from.get()) < 0) return fail_errno("clone a file in " + machine.work_dir);
  return "file copies share blocks";
}

constexpr Probe kProbes[] = {
    {"user namespaces", Need::required, user_namespace,
     "root in a sandbox would be root of the host: nothing starts",
     "sysctl user.max_user_namespaces=65536; in a container allow unshare and clone in its seccomp profile"},
    {"new mount API", Need::required, new_mount_api,
     "the launcher cannot build a file tree unseen by the host",
     "Linux 5.12 or newer; in a container allow fsopen, fsmount and move_mount"},
    {"overlayfs", Need::required, overlay, "a sandbox has no layer of its own to write to",
     "modprobe overlay; keep the state directory on ext4, xfs, btrfs or tmpfs, not on an overlay "
     "(--state-dir)"},
    {"id-mapped lower layer", Need::required, idmapped_lower,
     "files of an image would belong to nobody in the sandbox",
     "Linux 5.19 or newer, with the image directories on ext4, xfs, btrfs or tmpfs"},
    {"own root", Need::required, own_root, "the host's files would stay reachable",
     "run as root of the host, or grant SYS_ADMIN"},
    {"own /proc", Need::required, fresh_proc, "processes of the host would be visible",
     "in a container start it with an unmasked /proc (docker: --security-opt systempaths=unconfined)"},
    {"reflink copies", Need::note, reflink, "snapshots copy bytes instead of sharing them",
     "put the state directory on xfs or btrfs"},
};

}  // namespace

std::span<const Probe> mount_probes() { return kProbes; }

}  // namespace osb::cli
