#include "launcher/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "sys/mount.h"

namespace osb::launcher {
namespace {

constexpr const char* kFormatters[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};
// Whoever looks at block devices (udev, another worker that looks for its own) holds the loop device for as
// long as the host is slow. Nobody but the volume waits for this: it is a worker's work.
constexpr useconds_t kUnmountMost = 10'000'000, kUnmountPause = 5'000, kLongestPause = 80'000;
constexpr int kLoopAttempts = 64;  // others on this host take free loop devices, too

const char* formatter() {
  for (const char* path : kFormatters) {
    if (::access(path, X_OK) == 0) return path;
  }
  return nullptr;
}

int format(const char* path, const char* features, const char* extended) {
  const char* program = formatter();
  if (!program) return -ENOENT;
  const char* arguments[] = {program, "-q",     "-F", "-b",     "4096", "-m",   "0",
                             "-O",    features, "-E", extended, path,   nullptr};
  // The host's mke2fs.conf has no say in what is made.
  const char* environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "MKE2FS_CONFIG=/dev/null",
                               "MKE2FS_SYNC=0", nullptr};
  pid_t pid = ::fork();
  if (pid < 0) return -errno;
  if (pid == 0) {
    int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::execve(program, const_cast<char**>(arguments), const_cast<char**>(environment));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -errno;
  }
  return status == 0 ? 0 : -EIO;
}

int open_blank(const DiskOrder& order) {
  int blank = check_call(::open(order.blank, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (blank != -ENOENT) return blank;
  int made = check_call(::open(order.scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made < 0) return made;
  int status = check_call(::ftruncate(made, order.bytes));
  ::close(made);
  // No journal: nobody recovers this file system. Everything else is in holes of the file and reads as zero.
  if (status == 0)
    status = format(order.scratch, "^has_journal,^resize_inode", "lazy_itable_init=1,nodiscard");
  // Whole or not at all; when two make it at once, either will do.
  if (status == 0) status = check_call(::rename(order.scratch, order.blank));
  if (status < 0) {
    ::unlink(order.scratch);
    return status;
  }
  return check_call(::open(order.blank, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

// What is data, not what are holes.
int copy_sparse(int from, int to, int64_t bytes) {
  if (::ftruncate(to, bytes) < 0) return -errno;
  for (off_t at = 0; at < bytes;) {
    off_t data = ::lseek(from, at, SEEK_DATA);
    if (data < 0) return errno == ENXIO ? 0 : -errno;
    off_t end = ::lseek(from, data, SEEK_HOLE);
    if (end < 0) return -errno;
    off_t in = data, out = data;
    while (in < end) {
      ssize_t n = ::copy_file_range(from, &in, to, &out, static_cast<size_t>(end - in), 0);
      if (n < 0) return -errno;
      if (n == 0) return -EIO;
    }
    at = end;
  }
  return 0;
}

// The descriptor of a loop device over `file`, and its path.
int attach_loop(int file, char (&path)[32]) {
  int control = check_call(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (control < 0) return control;
  struct loop_config config{};
  config.fd = static_cast<uint32_t>(file);
  config.block_size = 4096;
  config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
  int result = -EBUSY;
  for (int attempt = 0; attempt < kLoopAttempts && result == -EBUSY; ++attempt) {
    int number = check_call(::ioctl(control, LOOP_CTL_GET_FREE));
    if (number < 0) {
      result = number;
      break;
    }
    std::snprintf(path, sizeof path, "/dev/loop%d", number);
    int device = check_call(::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (device < 0) {
      result = device;
      break;
    }
    result = check_call(::ioctl(device, LOOP_CONFIGURE, &config));
    if (result == 0) result = device;
    if (result < 0) ::close(device);
  }
  ::close(control);
  return result;
}

int mount_image(int file) {
  char path[32];
  int device = attach_loop(file, path);
  if (device < 0) return device;
  // Discards give blocks back to the host when files are removed inside. No thread of the kernel initialises
  // the inode tables: that would fill the holes they lie in.
  const sys::MountOption options[] = {{"source", path}, {"discard", nullptr}, {"noinit_itable", nullptr}};
  int mount = sys::mount_filesystem("ext4", options, 3, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  ::close(device);  // from here on the mount holds it
  return mount;
}

int make_image(const DiskOrder& order) {
  int place = sys::clone_mount(AT_FDCWD, order.directory);
  if (place < 0) return place;
  int image =
      check_call(::openat(place, "disk.img", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  ::close(place);
  if (image < 0) return image;
  int blank = open_blank(order);
  int status = blank < 0 ? blank : copy_sparse(blank, image, order.bytes);
  if (blank >= 0) ::close(blank);
  if (status == 0) return image;
  ::close(image);
  return status;
}

int make_uppers(const DiskOrder& order, int disk) {
  for (size_t i = 0; i < order.upper_count; ++i) {
    if (::mkdirat(disk, order.uppers[i], 0755) < 0 ||
        ::fchownat(disk, order.uppers[i], order.owner, order.owner, AT_SYMLINK_NOFOLLOW) < 0)
      return -errno;
  }
  return 0;
}

}  // namespace

int make_disk(const DiskOrder& order) {
  int image = make_image(order);
  if (image < 0) return image;
  int disk = mount_image(image);
  ::close(image);
  if (disk < 0) return disk;
  int status = make_uppers(order, disk);
  if (status == 0) return disk;
  ::close(disk);
  return status;
}

namespace {

bool is_behind(int device, const struct stat& file) {
  struct loop_info64 info{};
  if (::ioctl(device, LOOP_GET_STATUS64, &info) < 0) return false;
  // As the kernel writes device numbers for itself.
  unsigned major_number = major(file.st_dev), minor_number = minor(file.st_dev);
  uint64_t encoded =
      (minor_number & 0xff) | (major_number << 8) | (static_cast<uint64_t>(minor_number & ~0xffu) << 12);
  return info.lo_device == encoded && info.lo_inode == file.st_ino;
}

// The descriptor of the loop device that has this file behind it, and its path; -ENOENT when none has.
int find_loop(int image, char (&path)[300]) {
  struct stat file{};
  if (::fstat(image, &file) < 0) return -errno;
  DIR* devices = ::opendir("/sys/block");
  if (!devices) return -errno;
  int found = -ENOENT;
  while (struct dirent* entry = ::readdir(devices)) {
    if (std::strncmp(entry->d_name, "loop", 4) != 0) continue;
    std::snprintf(path, sizeof path, "/dev/%s", entry->d_name);
    int device = ::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (device < 0) continue;
    if (is_behind(device, file)) {
      found = device;
      break;
    }
    ::close(device);
  }
  ::closedir(devices);
  return found;
}

}  // namespace

int mount_disk_again(int image) {
  char path[300];
  int device = find_loop(image, path);
  if (device < 0) return device;
  const sys::MountOption options[] = {{"source", path}};
  int result = sys::mount_filesystem(
      "ext4", options, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
  ::close(device);
  return result;
}

namespace {

// Nobody looks for lost files in there.
int remove_lost_and_found(int image) {
  int disk = mount_image(image);
  if (disk < 0) return disk;
  int status = check_call(::unlinkat(disk, "lost+found", AT_REMOVEDIR));
  ::close(disk);
  // What is copied next has to be what an unmounted file system is.
  char path[300];
  useconds_t waited = 0, pause = kUnmountPause;
  while (status == 0 && waited < kUnmountMost) {
    int device = find_loop(image, path);
    if (device == -ENOENT) return 0;
    if (device < 0) return device;
    ::close(device);
    ::usleep(pause);
    waited += pause;
    // Less and less often: looking is holding, too, for others who wait here.
    pause = std::min(pause * 2, kLongestPause);
  }
  return status < 0 ? status : -EBUSY;
}

int open_lasting_blank(const LastingDiskOrder& order) {
  int blank = check_call(::open(order.blank, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (blank != -ENOENT) return blank;
  int made = check_call(::open(order.scratch, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (made < 0) return made;
  char extended[96];
  std::snprintf(extended, sizeof extended,
                "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=%u:%u", order.owner,
                order.owner);
  int status = check_call(::ftruncate(made, order.bytes));
  if (status == 0) status = format(order.scratch, "^resize_inode", extended);
  if (status == 0) status = remove_lost_and_found(made);
  if (status == 0) status = check_call(::rename(order.scratch, order.blank));
  if (status == 0) return made;
  ::unlink(order.scratch);
  ::close(made);
  return status;
}

}  // namespace

int fill_lasting_disk(int image, const LastingDiskOrder& order) {
  int blank = open_lasting_blank(order);
  if (blank < 0) return blank;
  int status = copy_sparse(blank, image, order.bytes);
  ::close(blank);
  return status;
}

int mount_lasting_disk(int image) {
  char path[300];
  int device = find_loop(image, path);
  if (device == -ENOENT) return mount_image(image);
  if (device < 0) return device;
  const sys::MountOption options[] = {{"source", path}};
  int mount = sys::mount_filesystem("ext4", options, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  ::close(device);
  return mount;
}

const char* disk_obstacle() {
  if (!formatter()) return "this host has no mkfs.ext4; install e2fsprogs";
  if (::access("/dev/loop-control", F_OK) < 0) return "this host has no loop devices (/dev/loop-control)";
  return nullptr;
}

}  // namespace osb::launcher
