#include "cli/decoys.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/ids.h"
#include "base/strings.h"

namespace osb::cli {
namespace {

constexpr size_t kMostSockets = 64, kMostNames = 32;
constexpr int kBacklog = 16;

// `name` begins with a zero byte when it is an abstract one.
Result<Fd> listen_local(const std::string& name) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return fail(Code::invalid_argument, "the name is too long");
  std::memcpy(address.sun_path, name.data(), name.size());
  auto size = static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + name.size());
  if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<struct sockaddr*>(&address), size) < 0 ||
      ::listen(socket.get(), kBacklog) < 0)
    return fail_errno("listen on a local socket");
  return socket;
}

Result<Fd> listen_loopback(int* port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  struct sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* at = reinterpret_cast<struct sockaddr*>(&address);
  if (!socket.valid() || ::bind(socket.get(), at, size) < 0 || ::listen(socket.get(), kBacklog) < 0 ||
      ::getsockname(socket.get(), at, &size) < 0)
    return fail_errno("listen on loopback");
  *port = ntohs(address.sin_port);
  return socket;
}

std::string in_hex(std::string_view text) {
  std::string digits;
  for (unsigned char c : text) digits += fmt::format("{:02x}", c);
  return digits;
}

}  // namespace

std::vector<std::string> socket_paths(std::string_view table, size_t most) {
  std::set<std::string> paths;
  for (std::string_view line : split(table, '\n')) {
    size_t at = line.find(" /");
    if (at != line.npos && paths.size() < most) paths.emplace(line.substr(at + 1));
  }
  return {paths.begin(), paths.end()};
}

std::vector<std::string> sandbox_names(const std::vector<std::string>& sockets) {
  std::set<std::string> names;
  for (std::string_view path : sockets) {
    size_t slash = path.rfind('/');
    std::string_view name = path.substr(slash + 1);
    for (std::string_view end : {".api", ".control"}) {
      if (!name.ends_with(end) || name.size() == end.size()) continue;
      names.emplace(name.substr(0, name.size() - end.size()));
      if (slash > 0) names.emplace(path.substr(0, slash));
    }
  }
  return {names.begin(), names.end()};
}

Result<Decoys> Decoys::create() {
  Decoys made(TRY(ScratchDir::create("/tmp")));
  std::string secret = new_hex_id();
  // For everybody: only the sandbox's own tree keeps it from being read.
  ::chmod(made.directory_.path().c_str(), 0755);
  made.canary_ = made.directory_.path() + "/canary-" + secret;
  TRY(write_file(made.canary_, "a canary of osb doctor --attack\n", O_CREAT | O_EXCL, 0644));
  made.abstract_name_ = "osb-abstract-" + secret;
  made.abstract_ = TRY(listen_local('\0' + made.abstract_name_));
  std::string path = made.directory_.path() + "/socket";
  made.socket_ = TRY(listen_local(path));
  ::chmod(path.c_str(), 0666);
  made.tcp_ = TRY(listen_loopback(&made.port_));
  made.segment_.key = static_cast<int>(0x05B00000u | (std::hash<std::string>()(secret) & 0xfffffu));
  made.segment_.id = ::shmget(made.segment_.key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  if (made.segment_.id < 0) return fail_errno("make a shared memory segment");
  // This process is the one to be found, under a name that no other has.
  std::string name = "osbv" + secret.substr(0, 8);
  ::prctl(PR_SET_NAME, name.c_str(), 0, 0, 0);
  made.victim_ = std::to_string(::getpid()) + ":" + name;
  made.sockets_ = socket_paths(read_file("/proc/net/unix", 16 << 20).value_or(""), kMostSockets);
  made.names_ = sandbox_names(made.sockets_);
  if (made.names_.size() > kMostNames) made.names_.resize(kMostNames);
  if (std::ranges::find(made.sockets_, path) == made.sockets_.end()) made.sockets_.push_back(path);
  return made;
}

Decoys::~Decoys() {
  if (segment_.id >= 0) ::shmctl(segment_.id, IPC_RMID, nullptr);
}

std::vector<std::string> Decoys::arguments_for(std::string_view attempt, const std::string& neighbour,
                                               const std::string& own) const {
  if (attempt == "canary") return {canary_};
  if (attempt == "host_processes") return {victim_};
  if (attempt == "host_ipc") return {std::to_string(segment_.key)};
  if (attempt == "host_loopback") return {std::to_string(port_)};
  if (attempt == "abstract_sockets") return {abstract_name_};
  if (attempt == "control_sockets") return sockets_;
  if (attempt != "names") return {};
  // In hexadecimal digits: written out, they would be found in the command line that has them.
  std::vector<std::string> names = {in_hex(neighbour), in_hex(directory_.path())};
  for (const std::string& name : names_) {
    if (name != own) names.push_back(in_hex(name));
  }
  return names;
}

}  // namespace osb::cli
