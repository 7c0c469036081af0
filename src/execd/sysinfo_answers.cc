#include "execd/sysinfo_answers.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/strings.h"

namespace osb::execd {
namespace {

constexpr uint64_t kPage = 4096;

struct Ids {
  uid_t uid = 0;
  gid_t gid = 0;
};

// The effective ids of a process.
std::optional<Ids> ids_of(pid_t pid) {
  auto status = read_file("/proc/" + std::to_string(pid) + "/status", 64 << 10);
  if (!status) return std::nullopt;
  std::optional<uid_t> uid, gid;
  for (std::string_view line : split(*status, '\n')) {
    auto words = split(line, '\t');
    if (words.size() < 3) continue;
    if (words[0] == "Uid:") uid = parse_number<uid_t>(words[2]);
    if (words[0] == "Gid:") gid = parse_number<gid_t>(words[2]);
  }
  if (!uid || !gid) return std::nullopt;
  return Ids{*uid, *gid};
}

// The memory of a process. There is no capability for this in a sandbox; whoever has the same ids may, and
// for files only the ids for files count, which are the calling thread's own.
Fd open_memory(pid_t pid) {
  auto ids = ids_of(pid);
  if (!ids) return Fd();
  ::syscall(SYS_setfsgid, ids->gid);
  ::syscall(SYS_setfsuid, ids->uid);
  Fd memory(::open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_WRONLY | O_CLOEXEC));
  ::syscall(SYS_setfsuid, ::geteuid());
  ::syscall(SYS_setfsgid, ::getegid());
  return memory;
}

struct sysinfo now() {
  auto usage = read_cgroup_usage("/sys/fs/cgroup", read_file("/proc/self/cgroup").value_or(""));
  struct timespec uptime{};
  ::clock_gettime(CLOCK_BOOTTIME, &uptime);
  return sandbox_sysinfo(usage, read_file("/proc/loadavg").value_or(""), uptime.tv_sec);
}

// Fills in the answer's error. False: the kernel is to answer as if nobody had been asked.
bool answer(int requests, const seccomp_notif& request, seccomp_notif_resp& response) {
  struct sysinfo info = now();
  if (info.totalram == 0) return false;
  Fd memory = open_memory(static_cast<pid_t>(request.pid));
  if (!memory.valid()) return false;
  // The number could be another process's by now; if the question still stands, what was opened is its own.
  if (::ioctl(requests, SECCOMP_IOCTL_NOTIF_ID_VALID, &request.id) < 0) return false;
  ssize_t written = ::pwrite(memory.get(), &info, sizeof info, static_cast<off_t>(request.data.args[0]));
  if (written != static_cast<ssize_t>(sizeof info)) response.error = -EFAULT;
  return true;
}

void run(const Fd& requests) {
  while (true) {
    seccomp_notif request{};
    if (::ioctl(requests.get(), SECCOMP_IOCTL_NOTIF_RECV, &request) < 0) {
      if (errno == EINTR || errno == ENOENT) continue;  // the caller was killed
      return;
    }
    seccomp_notif_resp response{};
    response.id = request.id;
    if (!answer(requests.get(), request, response)) response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    (void)::ioctl(requests.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
  }
}

}  // namespace

struct sysinfo sandbox_sysinfo(const CgroupUsage& usage, std::string_view load, long uptime) {
  struct sysinfo info{};
  info.uptime = uptime;
  info.mem_unit = 1;
  if (usage.memory_limit_bytes) info.totalram = *usage.memory_limit_bytes + kPage;
  info.freeram = info.totalram - std::min<uint64_t>(info.totalram, usage.memory_used_bytes.value_or(0));
  auto words = split(load, ' ');
  for (size_t i = 0; i < 3 && i < words.size(); ++i) {
    double number = parse_number<double>(words[i]).value_or(0);
    if (number > 0 && number < 1e6) info.loads[i] = static_cast<unsigned long>(number * (1 << SI_LOAD_SHIFT));
  }
  // "running/all"
  if (words.size() > 3) {
    auto all = parse_number<uint64_t>(words[3].substr(words[3].find('/') + 1));
    info.procs = static_cast<unsigned short>(std::min<uint64_t>(all.value_or(0), UINT16_MAX));
  }
  return info;
}

void answer_sysinfo(Fd requests) {
  ::fcntl(requests.get(), F_SETFD, FD_CLOEXEC);
  // Signals are the loop's business: the thread starts with all of them blocked.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  auto owned = std::make_unique<Fd>(std::move(requests));
  auto body = [](void* fd) -> void* {
    run(*std::unique_ptr<Fd>(static_cast<Fd*>(fd)));
    return nullptr;
  };
  // Not std::thread, which throws where the limit on processes leaves no room: then the call does not exist
  // in this sandbox (ENOSYS), and everything else does.
  pthread_t thread{};
  if (::pthread_create(&thread, nullptr, body, owned.get()) == 0) {
    (void)owned.release();
    ::pthread_detach(thread);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace osb::execd
