// Facts about the host as a whole: kernel, privilege, room and limits, and which other sandbox tools are
// here.

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/machine_probe.h"

namespace osb::cli {
namespace {

Result<std::string> kernel(const Machine&) {
  utsname name{};
  if (::uname(&name) < 0) return fail_errno("uname");
  return fmt::format("Linux {} {}", name.release, name.machine);
}

struct Capability {
  int number;
  const char* name;
};
// What the launcher uses between its start and a sandbox's first instruction.
constexpr Capability kNeeded[] = {{0, "CHOWN"},       {1, "DAC_OVERRIDE"}, {3, "FOWNER"},  {5, "KILL"},
                                  {6, "SETGID"},      {7, "SETUID"},       {8, "SETPCAP"}, {12, "NET_ADMIN"},
                                  {18, "SYS_CHROOT"}, {21, "SYS_ADMIN"},   {27, "MKNOD"}};
constexpr Capability kResource{24, "SYS_RESOURCE"};

Result<uint64_t> effective_capabilities() {
  auto status = TRY(read_file("/proc/self/status"));
  for (auto line : split(status, '\n')) {
    if (!line.starts_with("CapEff:")) continue;
    auto hex = trim(line.substr(7));
    uint64_t value = 0;
    auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (error == std::errc()) return value;
  }
  return fail(Code::internal, "no CapEff line in /proc/self/status");
}

Result<std::string> root(const Machine&) {
  if (::geteuid() != 0) return fail(Code::permission_denied, fmt::format("running as user {}", ::geteuid()));
  uint64_t held = TRY(effective_capabilities());
  std::string lacking;
  for (auto [number, name] : kNeeded) {
    if (!(held >> number & 1)) lacking += fmt::format("{}{}", lacking.empty() ? "" : " ", name);
  }
  if (!lacking.empty()) return fail(Code::permission_denied, "root without " + lacking);
  return "root with every capability the launcher needs";
}

Result<std::string> resource_capability(const Machine&) {
  if (!(TRY(effective_capabilities()) >> kResource.number & 1)) {
    return fail(Code::permission_denied, "hard limits can only be lowered");
  }
  return "hard limits can be raised";
}

constexpr rlim_t kWantedFiles = 4096;

Result<std::string> open_files(const Machine&) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return fail_errno("getrlimit");
  if (limit.rlim_max < kWantedFiles) return fail(Code::exhausted, fmt::format("only {}", limit.rlim_max));
  return fmt::format("{} soft, {} hard", limit.rlim_cur, limit.rlim_max);
}

Result<std::string> namespace_room(const Machine&) {
  std::string out;
  for (const char* kind : {"user", "mnt", "pid", "net"}) {
    auto text = TRY(read_file(fmt::format("/proc/sys/user/max_{}_namespaces", kind)));
    auto number = parse_number<uint64_t>(trim(text)).value_or(0);
    if (number < 1000) return fail(Code::exhausted, fmt::format("only {} {} namespaces", number, kind));
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", number, kind);
  }
  return out;
}

Result<std::string> disk(const Machine& machine) {
  struct statvfs fs{};
  if (::statvfs(machine.work_dir.c_str(), &fs) < 0) return fail_errno("statvfs " + machine.work_dir);
  double gib = static_cast<double>(fs.f_bavail) * static_cast<double>(fs.f_frsize) / (1 << 30);
  std::string text = fmt::format("{:.1f} GiB free for {}", gib, machine.state_dir);
  if (gib < 1) return fail(Code::exhausted, text);
  if (fs.f_files > 0 && fs.f_favail < 100'000)
    return fail(Code::exhausted, fmt::format("only {} files left", fs.f_favail));
  return text;
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (auto dir : split(path ? path : "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", ':')) {
    std::string full = fmt::format("{}/{}", dir, name);
    if (!dir.empty() && ::access(full.c_str(), X_OK) == 0) return full;
  }
  return {};
}

// For a comparison; the engine that the service would use is examined by engine_probe.cc.
Result<std::string> docker_daemon() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::string_view path = "/var/run/docker.sock";
  path.copy(address.sun_path, path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("socket");
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) < 0)
    return fail_errno("connect");
  return std::string(path);
}

Result<std::string> peers(const Machine&) {
  std::string out;
  for (const char* name : {"bwrap", "runc", "docker"}) {
    auto path = find_program(name);
    if (path.empty()) continue;
    if (std::string_view(name) == "docker" && !docker_daemon()) path += " (no daemon)";
    out += fmt::format("{}{}", out.empty() ? "" : ", ", path);
  }
  if (out.empty()) return fail(Code::not_found, "none of bwrap, runc, docker");
  return out;
}

constexpr Probe kProbes[] = {
    {"kernel", Need::note, kernel, "", ""},
    {"root", Need::required, root, "the launcher cannot build sandboxes",
     "sudo osb doctor; in a container grant it the capabilities named here"},
    {"CAP_SYS_RESOURCE", Need::note, resource_capability, "limits stay at what the service was started with",
     "grant SYS_RESOURCE to the service"},
    {"open files", Need::wanted, open_files,
     "few sandboxes at a time: each needs some descriptors of the service",
     "LimitNOFILE=65536 in the service's unit, or ulimit -n 65536"},
    {"namespaces allowed", Need::wanted, namespace_room, "few sandboxes at a time",
     "raise /proc/sys/user/max_*_namespaces"},
    {"disk", Need::wanted, disk, "sandboxes will fail with full disks",
     "free some space or move [native] state_dir"},
    {"other sandbox tools", Need::note, peers, "no comparison with them", "apt-get install bubblewrap"},
};

}  // namespace

std::span<const Probe> host_probes() { return kProbes; }

}  // namespace osb::cli
