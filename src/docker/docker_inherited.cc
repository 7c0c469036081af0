// Containers of the original server, taken over: see inherited.h. Nothing of ours is in them, so their ends
// are the engine's word, and their execd is reached by TCP as that server reached it.

#include "base/ids.h"
#include "base/log.h"
#include "base/strings.h"
#include "docker/docker_sandbox.h"
#include "docker/inherited.h"

namespace osb::docker {
namespace {

constexpr auto kConnectDeadline = std::chrono::seconds(10);
constexpr size_t kMostOutput = 64 * 1024;

std::string value_of(const Labels& labels, const char* name) {
  auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

}  // namespace

// Once taken over they stay, whatever the configuration says by then.
bool DockerRuntime::is_inherited(const Container& container, const std::string& handle) const {
  return is_of_others(container.labels) && handle_of(container.labels.at(kIdLabel)) == handle &&
         (settings_.adopt || files_.is_taken_over(handle));
}

Task<Result<void>> DockerRuntime::list_inherited(std::set<std::string>& handles) {
  if (!settings_.adopt) co_return Result<void>();
  for (const auto& labels : CO_TRY(co_await engine_.labels_of_all(kIdLabel))) {
    auto id = labels.find(kIdLabel);
    if (id == labels.end() || !is_of_others(labels)) continue;
    if (is_sandbox_id(id->second))
      handles.insert(handle_of(id->second));
    else
      log::warn("a container is not taken over: its id is none that this server could have", {});
  }
  co_return Result<void>();
}

Task<runtime::Inherited> DockerRuntime::inherit(Container container) {
  auto image = co_await engine_.image(container.image);
  auto out = inherited_from(container, image.value_or(Image()));
  apply_note(settings_.original, out);
  co_return out;
}

Task<Result<Container>> DockerRuntime::find_sidecar(std::string id) {
  auto sidecar = CO_TRY(co_await engine_.inspect(sidecar_name(id)));
  auto whose = sidecar.labels.find(kSidecarLabel);
  if (whose == sidecar.labels.end() || whose->second != id || sidecar.labels.contains(kOwnerLabel))
    co_return fail(Code::not_found, "there is no such sidecar");
  co_return sidecar;
}

// As that server does when it starts: sidecars of sandboxes that are no more.
Task<> DockerRuntime::sweep_sidecars() {
  auto sidecars = co_await engine_.containers_with({kSidecarLabel});
  auto sandboxes = co_await engine_.containers_with({kIdLabel});
  if (!sidecars || !sandboxes) co_return;
  std::set<std::string> ids;
  for (const Listed& one : *sandboxes) ids.insert(value_of(one.labels, kIdLabel));
  for (const Listed& one : *sidecars) {
    std::string id = value_of(one.labels, kSidecarLabel);
    if (id.empty() || one.labels.contains(kOwnerLabel) || ids.contains(id)) continue;
    log::info("removing a sidecar of a sandbox that is no more", {{"id", id}});
    (void)co_await engine_.remove(one.id);
  }
}

// Its own address, that of the container whose network it shares, or where the host has its ports.
Task<> DockerRuntime::find_inherited_way(SandboxPtr sandbox, const Container& container) {
  auto address = address_on(container, settings_.rules.network_mode);
  if (!address && container.network_mode == "host") address = "127.0.0.1";
  if (!address) {
    if (auto sidecar = co_await find_sidecar(sandbox->id)) {
      address = address_on(*sidecar, settings_.rules.network_mode);
      sandbox->published = sidecar->published;
    }
  }
  sandbox->address = address.value_or("");
}

Task<Result<io::Socket>> DockerRuntime::connect_inherited(SandboxPtr sandbox, uint16_t port) {
  std::string what = "port " + std::to_string(port);
  if (!sandbox->address.empty())
    co_return co_await io::with_deadline(kConnectDeadline, what, io::connect_tcp(sandbox->address, port));
  auto place = sandbox->published.find(port);
  if (place == sandbox->published.end())
    co_return fail(Code::unavailable, "no way leads to this port of a container that another server made");
  size_t colon = place->second.rfind(':');
  std::string host = place->second.substr(0, colon);
  auto there = parse_number<uint16_t>(std::string_view(place->second).substr(colon + 1));
  if (!there) co_return fail(Code::corrupt, "the engine tells no port of the host");
  if (host == "0.0.0.0") host = "127.0.0.1";
  co_return co_await io::with_deadline(kConnectDeadline, what, io::connect_tcp(std::move(host), *there));
}

// While it runs the port is its own. When it has ended, anybody in there can answer in its place.
Task<Result<Container>> DockerRuntime::find_running_sidecar(std::string id) {
  auto sidecar = CO_TRY(co_await find_sidecar(std::move(id)));
  if (!sidecar.running) co_return fail(Code::unavailable, "its sidecar has ended");
  if (sidecar.paused) co_return fail(Code::unavailable, "its sidecar stands still with it; resume it first");
  co_return sidecar;
}

Task<Result<io::Stream>> DockerRuntime::connect_others_egress(SandboxPtr sandbox) {
  CO_TRY(co_await find_running_sidecar(sandbox->id));
  co_return CO_TRY(co_await connect_inherited(sandbox, runtime::kEgressPort));
}

Task<Result<std::string>> DockerRuntime::ask_others_policy(SandboxPtr sandbox) {
  auto stream = CO_TRY(co_await connect_others_egress(sandbox));
  auto text = CO_TRY(
      co_await ask_egress(std::move(stream), sandbox->others_egress.value_or(""), "GET", "/policy", ""));
  CO_TRY(co_await find_running_sidecar(sandbox->id));
  co_return text;
}

// A copy gets it from this service. Without it the copy would have the whole of the engine's network.
Task<Result<std::optional<runtime::NetworkPolicy>>> DockerRuntime::others_policy(SandboxPtr sandbox) {
  auto text = co_await ask_others_policy(sandbox);
  Result<runtime::NetworkPolicy> policy;
  if (text)
    policy = policy_in(*text);
  else
    policy = std::unexpected(std::move(text.error()));
  if (policy) co_return std::optional(std::move(*policy));
  co_return fail(
      Code::unavailable,
      "another server made it with a network policy, and the sidecar that has it does not say which (" +
          policy.error().message + "); nothing is made of it without");
}

// The execd of that server relays to 127.0.0.1 of its container; ours needs no path for it.
std::string DockerRuntime::detour(const std::string& handle, uint16_t port) const {
  auto found = sandboxes_.find(handle);
  if (found == sandboxes_.end() || !found->second->inherited || port == runtime::kExecdPort) return "";
  return "/proxy/" + std::to_string(port);
}

Task<Result<runtime::Output>> DockerRuntime::inherited_logs(std::string container) {
  auto text = CO_TRY(co_await engine_.logs(std::move(container)));
  bool cut = text.size() > kMostOutput;
  co_return runtime::Output{cut ? text.substr(text.size() - kMostOutput) : std::move(text), cut};
}

// What the other server would have removed with it.
Task<> DockerRuntime::forget_inherited(SandboxPtr sandbox) {
  if (auto sidecar = co_await find_sidecar(sandbox->id)) (void)co_await engine_.remove(sidecar->id);
  for (const std::string& name : sandbox->volumes) {
    auto volume = co_await engine_.volume(name);
    if (!volume || !volume->labels.contains("opensandbox.io/volume-managed-by")) continue;
    (void)co_await engine_.remove_volume(name);  // unless another container has it
  }
}

}  // namespace osb::docker
