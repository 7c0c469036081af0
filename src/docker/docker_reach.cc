// How execd is reached. In a container that shares the host's kernel it gets listening sockets of the server,
// which nothing inside can name. A kernel of its own takes none of those: there execd listens by TCP at the
// container's address, and whoever connects proves that it has the sandbox's secret (base/knock.h), which
// execd has read from its boot directory. On another host the engine leads to it (docker_remote.cc), with the
// same proof. All ways end in the same: connections for the API and for control, and ones to ports inside.

#include <sys/socket.h>

#include <algorithm>

#include "docker/docker_sandbox.h"
#include "docker/knocking.h"
#include "io/descriptor.h"
#include "sys/descriptors.h"

namespace osb::docker {
namespace {

constexpr auto kBootDeadline = std::chrono::seconds(20);
constexpr auto kConnectDeadline = std::chrono::seconds(10);
// An engine starts a program for it.
constexpr auto kKnockDeadline = std::chrono::seconds(20);
constexpr io::Duration kAgainFirst = std::chrono::milliseconds(10),
                       kAgainMost = std::chrono::milliseconds(200);

}  // namespace

// What execd says of the directories of the host that it sees, a short line each.
Task<Result<void>> read_lines(io::Socket& execd, size_t count, std::string& text) {
  constexpr size_t kMostLine = 64;
  char piece[1024];
  while (static_cast<size_t>(std::ranges::count(text, '\n')) < count) {
    size_t got = CO_TRY(co_await io::read_some(execd, piece));
    text.append(piece, got);
    if (got == 0 || text.size() > count * kMostLine)
      co_return fail(Code::corrupt, "execd says something else");
  }
  co_return Result<void>();
}

Task<Result<void>> DockerRuntime::hand_over(Listeners listeners, std::vector<FileId> shown) {
  io::Acceptor hub(executor_, std::move(listeners.hub));
  auto execd = CO_TRY(co_await io::with_deadline(kBootDeadline, "execd", hub.accept()));
  const int given[] = {listeners.api.get(), listeners.control.get(), listeners.ports.get()};
  int sent = sys::send_with_descriptors(execd.native_handle(), "l", given);
  if (sent < 0) co_return fail_errno("give execd its listeners", -sent);
  if (shown.empty()) co_return Result<void>();
  std::string seen, wanted;
  CO_TRY(co_await io::with_deadline(kBootDeadline, "execd", read_lines(execd, shown.size(), seen)));
  for (const FileId& id : shown) wanted += to_line(id);
  if (seen != wanted) co_return fail(Code::permission_denied, why_not_shown(seen, wanted));
  // execd goes on only now: the rest of what it does is the image's choice.
  co_return co_await io::with_deadline(kBootDeadline, "execd", io::write_all(execd, "g"));
}

Result<void> DockerRuntime::find_way(Sandbox& sandbox, const Container& container) {
  auto secret = files_.read_secret(sandbox.handle);
  if (!secret && sandbox.by_engine())
    return fail(Code::corrupt,
                "what opens its execd is lost: the state directory has no secret of it; delete the sandbox");
  if (!secret && secret.error().code == Code::not_found) return {};
  sandbox.secret = TRY(std::move(secret));
  if (sandbox.by_engine() && sandbox.has_policy) sandbox.token = TRY(files_.read_token(sandbox.handle));
  if (sandbox.by_engine()) {
    // Root needs no name, which its programs can take away (/etc/passwd). Nobody else is made root by it:
    // they may have put something of their own where execd was (a directory above it that they may rename).
    std::string_view user = std::string_view(container.user).substr(0, container.user.find(':'));
    sandbox.user = user.empty() || user == "root" || user == "0" ? "0:0" : "";
    return {};
  }
  auto address = address_on(container, settings_.rules.network_mode);
  if (!address) return fail(Code::unavailable, "the engine tells no address of the container");
  sandbox.address = std::move(*address);
  return {};
}

// Until execd answers. Nothing tells when it listens, so it is tried; a container that has ended meanwhile is
// not waited for.
Task<Result<void>> DockerRuntime::await_execd(SandboxPtr sandbox) {
  auto until = std::chrono::steady_clock::now() + kBootDeadline;
  for (io::Duration again = kAgainFirst;; again = std::min(again * 2, kAgainMost)) {
    auto container = CO_TRY(co_await engine_.inspect(sandbox->container));
    if (!container.running) co_return fail(Code::unavailable, "the container does not run");
    CO_TRY(find_way(*sandbox, container));
    auto control = co_await open_control(sandbox);
    if (control) {
      sandbox->control = std::move(*control);
      co_return Result<void>();
    }
    if (std::chrono::steady_clock::now() > until) {
      if (sandbox->by_engine()) co_return std::unexpected(std::move(control.error()));
      co_return std::unexpected(
          std::move(control.error())
              .in("execd at " + sandbox->address + " (the server has to be where the engine's network is)"));
    }
    co_await io::sleep_for(again);
  }
}

Task<Result<runtime::ControlConnection>> DockerRuntime::open_control(SandboxPtr sandbox) {
  if (sandbox->secret.empty()) {
    co_return co_await io::with_deadline(
        kConnectDeadline, "execd",
        runtime::ControlConnection::open(files_.socket(sandbox->handle, "control")));
  }
  auto stream =
      CO_TRY(co_await io::with_deadline(kKnockDeadline, "execd", knock(sandbox, {knock::Kind::control, 0})));
  co_return runtime::ControlConnection(CO_TRY(io::to_socket(std::move(stream), executor_, tasks_)));
}

Task<Result<io::Stream>> DockerRuntime::knock(SandboxPtr sandbox, knock::Wish wish) {
  if (sandbox->by_engine()) co_return co_await knock_by_engine(sandbox, wish);
  co_return CO_TRY(co_await knock_at(sandbox->address, runtime::kExecdPort, sandbox->secret, wish));
}

// Through execd, which copies (execd/port_relay.h). A socket from inside would be one that others have, too:
// they could make the server's loop wait for it.
Task<Result<io::Socket>> DockerRuntime::connect_port(std::string handle, uint16_t port) {
  auto way = CO_TRY(co_await io::connect_unix(files_.socket(handle, "ports")));
  const char wanted[] = {static_cast<char>(port >> 8), static_cast<char>(port & 0xff)};
  CO_TRY(co_await io::write_all(way, std::string_view(wanted, sizeof wanted)));
  char answer = 0;
  size_t got = CO_TRY(co_await io::read_some(way, {&answer, 1}));
  if (got == 0) co_return fail(Code::unavailable, "execd closed the connection");
  if (answer != 0)
    co_return fail_errno("connect 127.0.0.1:" + std::to_string(port), static_cast<unsigned char>(answer));
  co_return way;
}

Task<Result<io::Stream>> DockerRuntime::connect(std::string handle, uint16_t port) {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end()) co_return fail(Code::not_found, "sandbox " + handle + " does not run");
  SandboxPtr sandbox = found->second;
  if (port == runtime::kEgressPort) co_return co_await connect_egress(sandbox);
  if (sandbox->inherited) co_return CO_TRY(co_await connect_inherited(sandbox, port));
  if (!sandbox->secret.empty()) {
    knock::Wish wish{.kind = knock::Kind::port, .port = port};
    if (port == runtime::kExecdPort) wish = {knock::Kind::api, 0};
    co_return co_await io::with_deadline(kKnockDeadline, "port " + std::to_string(port),
                                         knock(sandbox, wish));
  }
  if (port == runtime::kExecdPort) {
    co_return CO_TRY(co_await io::with_deadline(kConnectDeadline, "execd",
                                                io::connect_unix(files_.socket(handle, "api"))));
  }
  co_return CO_TRY(co_await io::with_deadline(kConnectDeadline, "port " + std::to_string(port),
                                              connect_port(std::move(handle), port)));
}

// execd's /proxy leads on to every other port. Without what is published the proxy of this server is the way.
std::optional<std::string> DockerRuntime::endpoint(const std::string& handle, uint16_t port) const {
  auto found = sandboxes_.find(handle);
  if (!settings_.rules.publish || found == sandboxes_.end() || port == runtime::kEgressPort)
    return std::nullopt;
  const auto& published = found->second->published;
  auto place = published.find(port);
  bool through_execd = place == published.end();
  if (through_execd) place = published.find(runtime::kExecdPort);
  if (place == published.end()) return std::nullopt;
  std::string_view at = place->second;
  std::string endpoint(at);
  if (at.starts_with("0.0.0.0:")) endpoint = settings_.public_host + std::string(at.substr(at.find(':')));
  return through_execd ? endpoint + "/proxy/" + std::to_string(port) : endpoint;
}

Task<Result<runtime::Output>> DockerRuntime::logs(std::string handle) {
  auto found = sandboxes_.find(handle);
  if (found != sandboxes_.end() && found->second->inherited)
    co_return co_await inherited_logs(found->second->container);
  co_return co_await runtime::execd_logs(*this, std::move(handle), tasks_);
}

}  // namespace osb::docker
