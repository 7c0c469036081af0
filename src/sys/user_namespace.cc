#include "sys/user_namespace.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/cleanup.h"
#include "base/strings.h"
#include "sys/process.h"

namespace osb::sys {
namespace {

constexpr uint32_t kMostIds = 0x1'0000;
constexpr int kMostLevels = 32;  // of the kernel

struct Mappers {
  std::string users, groups;  // arguments of newuidmap and newgidmap
};

std::string find_program(const char* name) {
  for (const char* directory : {"/usr/bin/", "/bin/", "/usr/sbin/", "/usr/local/bin/"}) {
    std::string path = std::string(directory) + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// In a process of its own, which stays outside: only there do these programs find the caller entitled.
[[noreturn]] void run_mapper(const std::string& program, pid_t pid, const std::string& map) {
  std::vector<std::string> words = {program, std::to_string(pid)};
  for (std::string_view word : split(map, ' ')) words.emplace_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  ::_exit(127);
}

bool succeeded(pid_t pid) {
  int status = -1;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return status == 0;
}

// The ranges of this user, or why there are none.
Result<Mappers> find_mappers(const std::string& user) {
  if (find_program("newuidmap").empty() || find_program("newgidmap").empty())
    return fail(Code::unsupported, "newuidmap and newgidmap are not installed (Debian: uidmap)");
  IdRange users = subordinate_ids(read_file("/etc/subuid").value_or(""), user, ::getuid());
  IdRange groups = subordinate_ids(read_file("/etc/subgid").value_or(""), user, ::getuid());
  if (users.count == 0 || groups.count == 0)
    return fail(Code::unsupported,
                "/etc/subuid and /etc/subgid give this user no ids (usermod --add-subuids)");
  users.count = groups.count = std::min(users.count, groups.count);
  return Mappers{map_arguments(::getuid(), users), map_arguments(::getgid(), groups)};
}

// Maps ids of a process that waits for it, from outside its namespace.
[[noreturn]] void map_from_outside(int start, pid_t target, const Mappers& mappers) {
  char byte = 0;
  if (::read(start, &byte, 1) != 1) ::_exit(1);
  for (auto [program, map] :
       {std::pair("newuidmap", &mappers.users), std::pair("newgidmap", &mappers.groups)}) {
    std::string path = find_program(program);
    pid_t pid = ::fork();
    if (pid == 0) run_mapper(path, target, *map);
    if (pid < 0 || !succeeded(pid)) ::_exit(1);
  }
  ::_exit(0);
}

Result<void> unshare_users() {
  if (::unshare(CLONE_NEWUSER) == 0) return {};
  Error error = fail_errno("make a user namespace").error();
  std::string why = obstacle(UserNamespaceSwitches::read());
  error.code = Code::permission_denied;
  error.message +=
      why.empty() ? "; start the service as root" : "; " + why + "; or start the service as root";
  return std::unexpected(std::move(error));
}

Result<void> map_one_id(uid_t uid, gid_t gid) {
  // A user may map its own group only after giving up the right to shed groups.
  TRY(write_file("/proc/self/setgroups", "deny"));
  TRY(write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1"));
  return write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
}

Result<void> become_root_here() {
  if (::setresgid(0, 0, 0) < 0 || ::setresuid(0, 0, 0) < 0)
    return fail_errno("become user 0 of the namespace");
  if (::unshare(CLONE_NEWNS) < 0) return fail_errno("make a mount namespace");
  // What is mounted here must not reach the host, what the host mounts later may be seen.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) < 0) return fail_errno("separate mounts");
  return {};
}

}  // namespace

IdRange subordinate_ids(std::string_view text, std::string_view user, uint32_t id) {
  IdRange best;
  for (std::string_view line : split(text, '\n')) {
    auto fields = split(trim(line), ':');
    if (fields.size() != 3) continue;
    bool ours = (!user.empty() && fields[0] == user) || fields[0] == std::to_string(id);
    auto first = parse_number<uint32_t>(fields[1]);
    auto count = parse_number<uint32_t>(fields[2]);
    // 4294967295 is no id, and nobody has a reason to hand out 0.
    if (!ours || !first || !count || *first == 0 || *count > UINT32_MAX - *first) continue;
    if (*count > best.count) best = {*first, *count};
  }
  return best;
}

std::string map_arguments(uint32_t own, IdRange range) {
  return "0 " + std::to_string(own) + " 1 1 " + std::to_string(range.first) + " " +
         std::to_string(std::min(range.count, kMostIds - 1));
}

uint32_t ids_from_zero(std::string_view map) {
  std::vector<std::pair<uint32_t, uint32_t>> extents;
  for (std::string_view line : split(map, '\n')) {
    std::vector<uint32_t> numbers;
    for (std::string_view word : split(line, ' ')) {
      if (auto number = parse_number<uint32_t>(trim(word)); number && !trim(word).empty())
        numbers.push_back(*number);
    }
    if (numbers.size() == 3) extents.emplace_back(numbers[0], numbers[2]);
  }
  std::sort(extents.begin(), extents.end());
  uint32_t next = 0;
  for (auto [first, count] : extents) {
    if (first != next) break;
    next = count > UINT32_MAX - next ? UINT32_MAX : next + count;
  }
  return next;
}

uint32_t mapped_ids() {
  uint32_t users = ids_from_zero(read_file("/proc/self/uid_map").value_or(""));
  uint32_t groups = ids_from_zero(read_file("/proc/self/gid_map").value_or(""));
  return std::min({users, groups, kMostIds});
}

std::string identity_map(uint32_t ids) {
  return ids <= 1 ? "0 0 1" : "0 0 1\n1 1 " + std::to_string(ids - 1);
}

bool may_set_groups() { return trim(read_file("/proc/self/setgroups").value_or("")) == "allow"; }

Result<std::string> enter_user_namespace(const std::string& user) {
  uid_t uid = ::getuid();
  gid_t gid = ::getgid();
  auto mappers = find_mappers(user);
  std::string extra_ids_obstacle;
  if (!mappers) extra_ids_obstacle = mappers.error().message;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd start(pipe[0]), go(pipe[1]);
  pid_t helper = -1;
  if (mappers) {
    pid_t target = ::getpid();
    helper = ::fork();
    if (helper < 0) return fail_errno("fork");
    if (helper == 0) {
      go.reset();
      map_from_outside(start.get(), target, *mappers);
    }
  }
  Cleanup reap;  // when this fails before the helper got its word, it ends by the closed pipe
  reap.push([&] {
    go.reset();
    if (helper > 0) (void)succeeded(helper);
  });
  TRY(unshare_users());
  reap.release();
  bool mapped = false;
  if (helper > 0) {
    TRY(write_all(go.get(), "1"));
    mapped = succeeded(helper);
    if (!mapped) extra_ids_obstacle = "newuidmap or newgidmap failed; see above";
  }
  if (!mapped) TRY(map_one_id(uid, gid));
  TRY(become_root_here());
  return extra_ids_obstacle;
}

Result<void> join_user_namespace_of(int pidfd) {
  struct stat own{}, above{};
  if (::stat("/proc/self/ns/user", &own) < 0) return fail_errno("look at /proc/self/ns/user");
  Fd space = TRY(open_at(AT_FDCWD, "/proc/" + std::to_string(TRY(pid_of(pidfd))) + "/ns/user", O_RDONLY));
  // A sandbox that is still being made has not entered its own yet.
  for (int level = 0; level < kMostLevels; ++level) {
    Fd parent(::ioctl(space.get(), NS_GET_PARENT));
    if (!parent.valid() || ::fstat(parent.get(), &above) < 0)
      return fail_errno("find the user namespace of a process");
    if (above.st_ino == own.st_ino) {
      if (::setns(space.get(), CLONE_NEWUSER) < 0) return fail_errno("enter the user namespace of a process");
      return become_root_here();
    }
    space = std::move(parent);
  }
  return fail(Code::not_found, "the process is not below this user namespace");
}

UserNamespaceSwitches UserNamespaceSwitches::read() {
  auto value = [](const char* path) { return std::string(trim(read_file(path).value_or(""))); };
  return {value("/proc/sys/kernel/unprivileged_userns_clone"), value("/proc/sys/user/max_user_namespaces"),
          value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")};
}

std::string obstacle(const UserNamespaceSwitches& switches) {
  if (switches.clone == "0")
    return "this system does not give user namespaces to ordinary users: sysctl -w "
           "kernel.unprivileged_userns_clone=1";
  if (switches.most == "0")
    return "this system allows no user namespaces: sysctl -w user.max_user_namespaces=10000";
  if (!switches.apparmor.empty() && switches.apparmor != "0")
    return "AppArmor restricts user namespaces of ordinary users: sysctl -w "
           "kernel.apparmor_restrict_unprivileged_userns=0";
  return {};
}

}  // namespace osb::sys
