#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/fnv.h"
#include "base/ids.h"
#include "runtime/native/images.h"
#include "sys/directory.h"
#include "sys/process.h"
#include "sys/remove_tree.h"

namespace osb::runtime {
namespace {

// What programs expect to find in /etc and what tells nothing about this host's secrets. Everything else
// stays out; of these, only what every user of the host may read is copied.
constexpr const char* kEtc[] = {"alternatives",
                                "bash.bashrc",
                                "bindresvport.blacklist",
                                "ca-certificates.conf",
                                "debian_version",
                                "deluser.conf",
                                "adduser.conf",
                                "fonts",
                                "gai.conf",
                                "host.conf",
                                "inputrc",
                                "issue",
                                "java-8-openjdk",
                                "java-11-openjdk",
                                "java-17-openjdk",
                                "java-21-openjdk",
                                "ld.so.cache",
                                "ld.so.conf",
                                "ld.so.conf.d",
                                "locale.alias",
                                "locale.conf",
                                "locale.gen",
                                "localtime",
                                "login.defs",
                                "magic",
                                "magic.mime",
                                "mailcap",
                                "mime.types",
                                "networks",
                                "os-release",
                                "perl",
                                "pki",
                                "profile",
                                "profile.d",
                                "protocols",
                                "python3",
                                "python3.11",
                                "rpc",
                                "services",
                                "shells",
                                "skel",
                                "ssl/certs",
                                "ssl/openssl.cnf",
                                "terminfo",
                                "timezone",
                                "xattr.conf"};

struct Account {
  const char* name;
  unsigned id;
  const char* home;
  const char* shell;
};
constexpr Account kAccounts[] = {{"root", 0, "/root", "/bin/bash"},
                                 {"daemon", 1, "/usr/sbin", "/usr/sbin/nologin"},
                                 {"bin", 2, "/bin", "/usr/sbin/nologin"},
                                 {"sys", 3, "/dev", "/usr/sbin/nologin"},
                                 {"mail", 8, "/var/mail", "/usr/sbin/nologin"},
                                 {"www-data", 33, "/var/www", "/usr/sbin/nologin"},
                                 {"user", 1000, "/home/user", "/bin/bash"},
                                 {"nobody", 65534, "/nonexistent", "/usr/sbin/nologin"}};
constexpr struct {
  const char* name;
  unsigned id;
} kGroups[] = {{"root", 0},    {"daemon", 1}, {"bin", 2},     {"sys", 3},     {"adm", 4},
               {"tty", 5},     {"disk", 6},   {"mail", 8},    {"sudo", 27},   {"www-data", 33},
               {"shadow", 42}, {"staff", 50}, {"users", 100}, {"user", 1000}, {"nogroup", 65534}};

Result<void> make_dir(const std::string& path, mode_t mode, uid_t owner = 0) {
  if (::mkdir(path.c_str(), mode) < 0 && errno != EEXIST) return fail_errno("make " + path);
  if (::chmod(path.c_str(), mode) < 0) return fail_errno("own " + path);
  // Where a user namespace does not have that id (see rootless.h), root owns it.
  if (::chown(path.c_str(), owner, owner) < 0 && errno != EINVAL) return fail_errno("own " + path);
  return {};
}

Result<void> make_file(const std::string& path, const std::string& text, mode_t mode = 0644) {
  return in_context(path, write_file(path, text, O_CREAT | O_TRUNC, mode));
}

Result<void> copy_file(int in, const std::string& to) {
  Fd out = TRY(open_at(AT_FDCWD, to, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  while (true) {
    ssize_t n = ::copy_file_range(in, nullptr, out.get(), nullptr, 1 << 20, 0);
    if (n == 0) return {};
    if (n > 0) continue;
    if (errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP) return fail_errno("copy to " + to);
    std::string text = TRY(read_all(in, 64 << 20));
    return in_context(to, write_all(out.get(), text));
  }
}

// What cannot be read is left out: the image is a convenience, not a backup. But not for want of memory or
// descriptors: that is over in a moment, and the image stays for as long as the host runs.
Result<void> leave_out(const std::string& path, int error) {
  if (code_from_errno(error) == Code::exhausted) return fail_errno("read " + path, error);
  return {};
}

enum class Entry { unknown, link };

// Calls for each name in the directory, with what it is as far as the directory says.
template <class Visit>
Result<void> for_each_entry(const std::string& path, Visit visit) {
  DIR* opened = ::opendir(path.c_str());
  if (!opened) return leave_out(path, errno);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opened, ::closedir);
  for (errno = 0; struct dirent* entry = ::readdir(dir.get()); errno = 0) {
    std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    TRY(visit(name, entry->d_type == DT_LNK ? Entry::link : Entry::unknown));
  }
  return leave_out(path, errno);
}

Result<void> copy_link(const std::string& from, const std::string& to) {
  char target[4096];
  ssize_t n = ::readlink(from.c_str(), target, sizeof target - 1);
  if (n <= 0) return leave_out(from, errno);
  if (::symlink(std::string(target, static_cast<size_t>(n)).c_str(), to.c_str()) < 0 && errno != EEXIST)
    return fail_errno("link " + to);
  return {};
}

// Files, directories and links; links are copied as they are, they may lead into /usr.
Result<void> copy_readable(const std::string& from, const std::string& to, Entry entry = Entry::unknown) {
  struct stat info{};
  info.st_mode = S_IFLNK;  // known without a look; a host has hundreds
  if (entry != Entry::link && ::lstat(from.c_str(), &info) < 0) return leave_out(from, errno);
  bool readable_file = S_ISREG(info.st_mode) && (info.st_mode & 0004);
  // The same inode under another name, where the file system allows it: nothing in a sandbox can write to it,
  // and a new one costs a first start a millisecond each on a busy disk.
  if ((readable_file || S_ISLNK(info.st_mode)) &&
      ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0)
    return {};
  if (S_ISLNK(info.st_mode)) return copy_link(from, to);
  if (readable_file) {
    Fd in(::open(from.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!in.valid()) return leave_out(from, errno);
    TRY(copy_file(in.get(), to));
    if (::chmod(to.c_str(), info.st_mode & 0755) < 0) return fail_errno("own " + to);
    return {};
  }
  if (!S_ISDIR(info.st_mode) || !(info.st_mode & 0001)) return {};
  if (::mkdir(to.c_str(), 0755) < 0 && errno != EEXIST) return fail_errno("make " + to);
  return for_each_entry(from, [&](const std::string& name, Entry inner) {
    return copy_readable(from + "/" + name, to + "/" + name, inner);
  });
}

Result<void> write_accounts(const std::string& etc) {
  std::string passwd, shadow, group;
  for (const Account& a : kAccounts) {
    std::string id = std::to_string(a.id);
    unsigned gid = a.id;
    passwd +=
        std::string(a.name) + ":x:" + id + ":" + std::to_string(gid) + "::" + a.home + ":" + a.shell + "\n";
    shadow += std::string(a.name) + ":*:19000:0:99999:7:::\n";
  }
  for (const auto& g : kGroups) group += std::string(g.name) + ":x:" + std::to_string(g.id) + ":\n";
  TRY(make_file(etc + "/passwd", passwd));
  TRY(make_file(etc + "/group", group));
  TRY(make_file(etc + "/shadow", shadow, 0640));
  return {};
}

Result<void> write_root(const std::string& root) {
  for (const char* dir : {"",
                          "/etc",
                          "/etc/ssl",
                          "/home",
                          "/var",
                          "/var/cache",
                          "/var/lib",
                          "/var/log",
                          "/var/mail",
                          "/var/spool",
                          "/srv",
                          "/opt",
                          "/opt/opensandbox",
                          "/mnt",
                          "/media",
                          "/run",
                          "/usr",
                          "/proc",
                          "/sys",
                          "/dev",
                          "/workspace"}) {
    TRY(make_dir(root + dir, 0755));
  }
  TRY(make_dir(root + "/root", 0700));
  TRY(make_dir(root + "/home/user", 0755, 1000));
  TRY(make_dir(root + "/tmp", 01777));
  TRY(make_dir(root + "/var/tmp", 01777));
  TRY(make_dir(root + "/run/lock", 01777));
  if (::symlink("/run", (root + "/var/run").c_str()) < 0 && errno != EEXIST)
    return fail_errno("link /var/run");
  for (const char* dir : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    char target[256];
    ssize_t n = ::readlink(dir, target, sizeof target - 1);
    if (n < 0) TRY(leave_out(dir, errno));
    if (n > 0 && ::symlink(std::string(target, static_cast<size_t>(n)).c_str(), (root + dir).c_str()) < 0 &&
        errno != EEXIST) {
      return fail_errno(std::string("link ") + dir);
    }
  }
  for (const char* name : kEtc) TRY(copy_readable(std::string("/etc/") + name, root + "/etc/" + name));
  TRY(write_accounts(root + "/etc"));
  TRY(make_file(root + "/etc/nsswitch.conf",
                "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"));
  if (::symlink("/proc/self/mounts", (root + "/etc/mtab").c_str()) < 0 && errno != EEXIST)
    return fail_errno("link mtab");
  return {};
}

// Over every image: names that must agree with the namespaces, whatever the image says.
Result<void> write_common(const std::string& root) {
  TRY(make_dir(root, 0755));
  TRY(make_dir(root + "/etc", 0755));
  TRY(make_file(root + "/etc/hostname", "sandbox\n"));
  TRY(make_file(root + "/etc/hosts",
                "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n"));
  TRY(make_file(root + "/etc/resolv.conf", "nameserver 127.0.0.1\n"));
  return {};
}

// Changes whenever a copied file of the host does, or the recipe.
class Fingerprint {
 public:
  void add(const void* bytes, size_t size) { hash_.add(bytes, size); }
  Result<void> add_tree(const std::string& path, Entry entry = Entry::unknown) {
    add(path.data(), path.size());
    if (entry == Entry::link) return {};  // another one in its place has changed the directory
    struct stat info{};
    if (::lstat(path.c_str(), &info) < 0) return leave_out(path, errno);
    add(&info.st_mtim, sizeof info.st_mtim);
    add(&info.st_mode, sizeof info.st_mode);
    if (!S_ISDIR(info.st_mode)) return {};
    return for_each_entry(
        path, [&](const std::string& name, Entry inner) { return add_tree(path + "/" + name, inner); });
  }
  std::string name() const {
    char text[32];
    std::snprintf(text, sizeof text, "host-%016llx", static_cast<unsigned long long>(hash_.value()));
    return text;
  }

 private:
  Fnv1a hash_;
};

constexpr char kRecipe[] = "3";  // raised when this file writes something else

// Nobody waits until an image is on the disk, so after a power cut it may have its name and empty files. What
// an earlier boot made is therefore made anew; no sandbox of that boot is left to use it.
constexpr char kBoot[] = "/boot";

bool is_of_boot(const std::string& image, const std::string& boot) {
  return read_file(image + kBoot).value_or("") == boot;
}

Result<void> remove_earlier(const std::string& images, const std::string& version, const std::string& boot) {
  Fd dir = TRY(open_at(AT_FDCWD, images, O_RDONLY | O_DIRECTORY));
  for (const std::string& name : TRY(sys::names_in(dir.get()))) {
    if (!name.starts_with("host-") && !name.starts_with(".new-")) continue;
    auto made_in = read_file(images + "/" + name + kBoot);
    // Those without a note are of an earlier version of this program, whose sandboxes may live.
    if (name == version || (made_in && *made_in != boot)) TRY(sys::remove_from_trash(dir.get(), name));
  }
  return {};
}

}  // namespace

Result<std::string> write_host_image(const std::string& state_dir) {
  mode_t before = ::umask(022);
  std::string images = state_dir + "/images";
  auto write = [&]() -> Result<std::string> {
    TRY(make_dir(images, 0700));
    Fingerprint fingerprint;
    fingerprint.add(kRecipe, sizeof kRecipe);
    for (const char* name : kEtc) TRY(fingerprint.add_tree(std::string("/etc/") + name));
    std::string version = fingerprint.name();
    std::string boot = TRY(sys::boot_id());
    if (is_of_boot(images + "/" + version, boot)) return version;
    TRY(remove_earlier(images, version, boot));
    // Built aside and put in place by one rename: what has the name is complete.
    std::string name = ".new-" + new_hex_id(), fresh = images + "/" + name;
    Fd dir = TRY(open_at(AT_FDCWD, images, O_RDONLY | O_DIRECTORY));
    Cleanup undo;
    undo.push([&] { (void)sys::remove_from_trash(dir.get(), name); });
    TRY(make_dir(fresh, 0700));
    TRY(make_file(fresh + kBoot, boot));
    TRY(write_root(fresh + "/root"));
    TRY(write_common(fresh + "/common"));
    if (::rename(fresh.c_str(), (images + "/" + version).c_str()) < 0) return fail_errno("place " + version);
    undo.release();
    return version;
  };
  auto done = in_context("write the host image", write());
  ::umask(before);
  return done;
}

}  // namespace osb::runtime
