#include "launcher/containers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "launcher/checks.h"
#include "launcher/started.h"
#include "sys/directory.h"
#include "sys/namespaces.h"
#include "sys/process.h"

namespace osb::launcher {
namespace {

constexpr size_t kMost = 8192;
constexpr size_t kMostNote = 512;
constexpr size_t kContainerIdBytes = 64;

Error refused(const char* why) { return {Code::permission_denied, 0, std::string("refused: ") + why}; }

bool is_container_id(std::string_view text) {
  return text.size() == kContainerIdBytes &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// "12:pids:/docker/ID", "0::/system.slice/docker-ID.scope", "0::/libpod_parent/libpod-ID": a name on the way
// is that of the container.
bool is_in_group_of(std::string_view groups, const std::string& container) {
  std::string scope = "-" + container + ".scope", podmans = "libpod-" + container;
  for (std::string_view line : split(groups, '\n')) {
    for (std::string_view name : split(line, '/')) {
      if (name == container || name == podmans || name.ends_with(scope)) return true;
    }
  }
  return false;
}

bool is_first_of_its_namespace(std::string_view status) {
  size_t at = status.find("\nNSpid:");
  if (at == status.npos) return false;
  std::string_view line = status.substr(at + 1);
  return trim(line.substr(0, line.find('\n'))).ends_with("\t1");
}

bool is_same_namespace(int one, int other) {
  struct stat a{}, b{};
  if (::fstat(one, &a) < 0 || ::fstat(other, &b) < 0) return true;  // nobody knows: then it is
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Result<uint64_t> number_of(int network_namespace) {
  struct stat found{};
  if (::fstat(network_namespace, &found) < 0) return fail_errno("look at a network namespace");
  return static_cast<uint64_t>(found.st_ino);
}

}  // namespace

// A process of this boot, and the network that it was in.
struct Containers::Note {
  Started process;
  std::string boot, container;
  uint64_t network = 0;
};

// Both of one process: the pidfd was open before anything was looked at, and it lived afterwards.
struct Containers::Process {
  Fd pidfd, network;
};

Result<Containers> Containers::open(const std::string& directory) {
  TRY(sys::ensure_directory(directory, 0700, ::geteuid(), ::getegid()));
  Containers containers;
  containers.directory_ = TRY(open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(containers.forget_ended());
  return containers;
}

Result<void> Containers::forget_ended() {
  auto ids = TRY(sys::names_in(directory_.get()));
  count_ = ids.size();
  for (const std::string& id : ids) {
    auto note = read(id);
    auto found = note ? find(*note) : Result<Process>(std::unexpected(std::move(note.error())));
    if (!found && (found.error().code == Code::not_found || found.error().code == Code::corrupt)) remove(id);
  }
  return {};
}

Result<Containers::Process> Containers::find(const Note& note) {
  auto gone = [] { return fail(Code::not_found, "the container is gone"); };
  if (!note.boot.empty() && note.boot != TRY(sys::boot_id())) return gone();
  auto pid = static_cast<pid_t>(note.process.pid);
  auto pidfd = sys::open_pidfd(pid);
  if (!pidfd && pidfd.error().sys_errno == ESRCH) return gone();
  if (!pidfd) return std::unexpected(std::move(pidfd.error()));
  std::string proc = "/proc/" + std::to_string(pid);
  auto groups = read_file(proc + "/cgroup");
  auto status = read_file(proc + "/status");
  auto ticks = sys::process_start_ticks(pid);
  auto network = open_at(AT_FDCWD, proc + "/ns/net", O_RDONLY);
  // What was read is of this process, which still has its number, or of nobody.
  struct pollfd ended{pidfd->get(), POLLIN, 0};
  if (int n = ::poll(&ended, 1, 0); n != 0) return n > 0 ? gone() : fail_errno("look at a container");
  if (note.process.start_ticks != 0 && TRY(std::move(ticks)) != note.process.start_ticks) return gone();
  if (!is_in_group_of(TRY(std::move(groups)), note.container))
    return std::unexpected(refused("the process is not in that container"));
  if (!is_first_of_its_namespace(TRY(std::move(status))))
    return std::unexpected(refused("the process is not the first one of its container"));
  Process found{std::move(*pidfd), TRY(std::move(network))};
  if (note.network != 0 && TRY(number_of(found.network.get())) != note.network)
    return std::unexpected(refused("the container has another network than before"));
  return found;
}

Result<void> Containers::write(const std::string& id, const Note& note) {
  std::string text = std::to_string(note.process.pid) + " " + std::to_string(note.process.start_ticks) + " " +
                     note.boot + " " + note.container + " " + std::to_string(note.network);
  Fd file = TRY(open_beneath(directory_.get(), id, O_WRONLY | O_CREAT | O_EXCL, 0600));
  return in_context("note a container", write_all(file.get(), text));
}

Result<Containers::Note> Containers::read(const std::string& id) const {
  Fd file = TRY(open_beneath(directory_.get(), id, O_RDONLY));
  std::string text = TRY(read_all(file.get(), kMostNote));
  auto words = split(text, ' ');
  // Half a note: the launcher died while it wrote it, and nothing was opened.
  if (words.size() != 5 || !is_container_id(words[3])) return fail(Code::corrupt, "no note of a container");
  auto pid = parse_number<pid_t>(words[0]);
  auto ticks = parse_number<uint64_t>(words[1]), network = parse_number<uint64_t>(words[4]);
  if (!pid || *pid <= 1 || !ticks || *ticks == 0 || !network || *network == 0 || words[2].empty())
    return fail(Code::corrupt, "no note of a container");
  return Note{{*pid, *ticks}, std::string(words[2]), std::string(words[3]), *network};
}

Result<void> Containers::add(const std::string& id, const std::string& container, int64_t pid, int home) {
  TRY(check_id(id));
  if (home < 0) return fail(Code::unsupported, "a service without root gives containers no network");
  if (!is_container_id(container) || pid <= 1 || pid > INT32_MAX)
    return std::unexpected(refused("no container, or no process"));
  if (count_ >= kMost) TRY(forget_ended());
  if (count_ >= kMost) return fail(Code::exhausted, "too many containers have a network");
  Note note{{pid, 0}, "", container, 0};
  Process process = TRY(find(note));
  if (is_same_namespace(process.network.get(), home))
    return std::unexpected(refused("the container has the network of the host"));
  note.process.start_ticks = TRY(sys::process_start_ticks(static_cast<pid_t>(pid)));
  note.boot = TRY(sys::boot_id());
  note.network = TRY(number_of(process.network.get()));
  TRY(write(id, note));
  ++count_;
  auto outlet = sys::open_outlet(process.network.get(), home, sys::OutletFor::first);
  if (!outlet) {
    remove(id);
    return std::unexpected(std::move(outlet.error()).in("open the container's network"));
  }
  opened_[id] = std::move(*outlet);
  return {};
}

bool Containers::contains(const std::string& id) const {
  return check_id(id) && ::faccessat(directory_.get(), id.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Listeners> Containers::listeners(const std::string& id, int home) {
  if (heard_.contains(id)) return fail(Code::already_exists, "somebody has the container's listeners");
  auto process = find(TRY(read(id)));
  if (!process) {
    if (process.error().code == Code::not_found) remove(id);
    return std::unexpected(std::move(process.error()));
  }
  sys::Outlet outlet;
  if (auto opened = opened_.extract(id); !opened.empty())
    outlet = std::move(opened.mapped());
  else
    outlet = TRY(sys::open_outlet(process->network.get(), home, sys::OutletFor::again));
  Listeners given{id, false, {}};
  given.descriptors.push_back(std::move(process->pidfd));
  for (Fd& socket : outlet) given.descriptors.push_back(std::move(socket));
  heard_.insert(id);
  return given;
}

void Containers::remove(const std::string& id) {
  opened_.erase(id);
  heard_.erase(id);
  if (::unlinkat(directory_.get(), id.c_str(), 0) == 0 && count_ > 0) --count_;
}

}  // namespace osb::launcher
