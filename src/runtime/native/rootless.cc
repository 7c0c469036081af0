#include "runtime/native/rootless.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strings.h"
#include "launcher/identity.h"
#include "launcher/rootless.h"
#include "launcher/settings.h"
#include "sys/directory.h"
#include "sys/user_namespace.h"

namespace osb::runtime {
namespace {

// Into the namespace of any sandbox of an earlier service that still lives; false when there is none.
bool join_earlier_service(const std::string& state_dir) {
  std::string path = state_dir + "/" + launcher::state::kSandboxes;
  for (const std::string& id : sys::names_in(path).value_or(std::vector<std::string>())) {
    auto first = launcher::recorded_process(state_dir, id);
    if (!first) continue;
    auto entered = sys::join_user_namespace_of(first->get());
    if (entered) return true;
    // Most likely it ended just now.
    log::warn("cannot join a sandbox's user namespace", {{"id", id}, {"error", entered.error().message}});
  }
  return false;
}

// The directories above the state directory that a fresh home does not have.
Result<void> make_parents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1)) {
    if (::mkdir(path.substr(0, slash).c_str(), 0700) < 0 && errno != EEXIST && errno != EACCES &&
        errno != EROFS)
      return fail_errno("make " + path.substr(0, slash));
  }
  return {};
}

// Tells whose the directory is.
std::string marker(const std::string& state_dir) { return state_dir + "/rootless"; }

Result<void> claim(const std::string& state_dir, const std::string& given) {
  TRY(make_parents(state_dir));
  auto marked = [&]() -> Result<void> {
    TRY(launcher::claim_state_dir(state_dir, given));
    return write_file(marker(state_dir), "", O_CREAT | O_NOFOLLOW, 0600);
  }();
  if (marked) return {};
  return fail(
      Code::permission_denied,
      "user " + std::to_string(::getuid()) + " cannot keep files in " + state_dir + " (" +
          marked.error().message +
          "); remove native.state_dir from the configuration to use a directory of this user's own, or "
          "start the service as root");
}

}  // namespace

Result<void> check_not_rootless(const std::string& state_dir) {
  if (::access(marker(state_dir).c_str(), F_OK) < 0) return {};
  return fail(Code::wrong_state, state_dir +
                                     " belongs to a service that an ordinary user started; start it as that "
                                     "user, or set native.state_dir to another place");
}

Result<void> enter_rootless(const std::string& state_dir, const std::string& given) {
  TRY(claim(state_dir, given));
  if (join_earlier_service(state_dir)) return {};
  struct passwd* account = ::getpwuid(::getuid());
  std::string obstacle = TRY(sys::enter_user_namespace(account ? account->pw_name : ""));
  if (!obstacle.empty()) log::warn("sandboxes have one user only", {{"reason", obstacle}});
  return {};
}

RootlessFacts RootlessFacts::read(std::string_view abilities) {
  RootlessFacts facts{.ids = sys::mapped_ids(), .sets_groups = sys::may_set_groups()};
  for (std::string_view word : split(abilities, ',')) {
    if (word == "freeze") facts.freezes = true;
    if (word == "cpu") facts.limits_cpu = true;
    if (word == "memory") facts.limits_memory = true;
    if (word == "pids") facts.limits_pids = true;
  }
  return facts;
}

Isolation rootless_isolation(const RootlessFacts& facts) {
  Isolation out{.tier =
                    "rootless: user namespace of the service's user first; mount, pid, network, ipc, uts and "
                    "cgroup namespaces owned by it; a user namespace of its own, without rights over the "
                    "former, entered last; capabilities dropped, seccomp, no_new_privs"};
  auto lose = [&](std::string what) { out.missing.push_back(std::move(what)); };
  std::string unlimited = facts.limits_cpu ? "" : "cpu";
  if (!facts.limits_memory) unlimited += unlimited.empty() ? "memory" : " and memory";
  if (!unlimited.empty())
    lose(
        unlimited +
        " not limited, whatever resourceLimits say: no cgroup controller is delegated to the service's user; "
        "programs that count processors or read /proc/meminfo see the sizes asked for");
  if (!facts.limits_cpu)
    lose("execd shares the processors with what its sandbox runs: a fork bomb there delays its answers");
  if (!facts.limits_pids) lose("processes are limited by RLIMIT_NPROC, which counts per user of the sandbox");
  if (!facts.freezes)
    lose("pause and resume: no cgroup is delegated to the service's user (systemd: Delegate=yes)");
  if (!facts.limits_memory) lose("an end for lack of memory is reported as a kill like any other");
  lose("the size of the disk and its speed cannot be limited");
  lose("the sandbox's root is the service's user outside, in every sandbox: no ids of its own");
  lose("the server runs as the same user as the launcher, without capabilities");
  lose(
      "layers are not idmapped: what belongs to the host's root, /usr of the image host first of all, "
      "belongs "
      "to nobody inside and cannot be changed");
  lose("images cannot be imported; host and unpacked directories can be used");
  if (facts.ids <= 1)
    lose(
        "only user and group 0 exist inside: install newuidmap and newgidmap (Debian: uidmap) and give the "
        "service's user a range in /etc/subuid and /etc/subgid");
  else if (facts.ids < 0x1'0000)
    lose("only users and groups below " + std::to_string(facts.ids) + " exist inside");
  if (!facts.sets_groups)
    lose(
        "supplementary groups of the service's user stay with every process of a sandbox: the kernel lets "
        "nobody drop them without newgidmap");
  return out;
}

}  // namespace osb::runtime
