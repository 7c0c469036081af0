// What containers see of the host and of the engine. Named volumes are the engine's: those that sandboxes
// asked for have labels that say so, and whose they are. One without any label of ours is somebody else's:
// who has the server's own key may use it, and nothing of ours marks or removes it.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/sha256.h"
#include "docker/create_failures.h"
#include "docker/docker_sandbox.h"
#include "docker/patient_look_up.h"
#include "sandbox/principal.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;
using runtime::Mount;
using runtime::NamedVolume;

constexpr char kManagedLabel[] = "opensandbox.io/volume-managed-by";
constexpr char kTenantLabel[] = "opensandbox.io/volume-of";
constexpr char kClaimLabel[] = "opensandbox.io/volume-claim";
constexpr ApiVersion kSubPaths{1, 45};
constexpr size_t kOwnerDigits = 16;
constexpr auto kMakeDeadline = std::chrono::seconds(10);

// Names of an engine are everybody's: those of one owner are as the request has them, the rest are apart. No
// claim has a dot in its name.
std::string engine_name(const std::string& owner, const std::string& claim) {
  if (owner.empty() || owner == sandbox::kDefaultOwner) return claim;
  return "o" + to_hex(sha256_digest(owner)).substr(0, kOwnerDigits) + "." + claim;
}

std::string owner_of(const std::string& owner) {
  return owner.empty() ? std::string(sandbox::kDefaultOwner) : owner;
}

std::string label_of(const Volume& volume, const char* name) {
  auto found = volume.labels.find(name);
  return found == volume.labels.end() ? "" : found->second;
}

// Made by somebody else, as far as labels and names tell: servers call what they keep for themselves so.
bool is_foreign(const Volume& volume) {
  return !volume.name.starts_with("opensandbox-") &&
         std::ranges::none_of(volume.labels,
                              [](const auto& label) { return label.first.starts_with("opensandbox.io/"); });
}

bool may_use(const Volume& volume, const std::string& owner, bool foreign) {
  if (!volume.labels.contains(kManagedLabel))
    return foreign && owner_of(owner) == sandbox::kDefaultOwner && is_foreign(volume);
  std::string of = label_of(volume, kTenantLabel);
  return of.empty() || of == owner_of(owner);
}

Kind kind_of(const Error& error, bool has_sub_path) {
  switch (error.code) {
    case Code::invalid_argument:
      return has_sub_path ? Kind::sub_path_refused : Kind::host_path_refused;
    case Code::permission_denied:
      return error.sys_errno != 0 ? Kind::host_path_failed : Kind::host_path_refused;
    default:
      return Kind::host_path_failed;
  }
}

// Whether its directories are ones of the engine's host.
bool has_parts(const Volume& volume) { return volume.driver == "local" && !volume.mounted_on_use; }

std::unexpected<CreateFailure> failed_whole() {
  return failed(Kind::sub_path_driver,
                {Code::unsupported, 0,
                 "subPath: this volume is no directory of the engine's host, and engines before Docker 26 "
                 "show such a one as a whole only"});
}

std::unexpected<CreateFailure> failed_part(bool remote) {
  return failed(Kind::unsupported,
                {Code::unsupported, 0,
                 fmt::format("{} can show a directory of a volume (subPath) with Docker 26 and later",
                             remote ? "an engine on another host" : "a container with a kernel of its own")});
}

}  // namespace

Task<Created<ContainerMount>> DockerRuntime::find_volume(std::string owner, Mount mount,
                                                         std::vector<MadeVolume>& made) {
  ContainerMount out{.kind = ContainerMount::Kind::volume,
                     .source = engine_name(owner, mount.source),
                     .target = mount.target,
                     .read_only = mount.access == Mount::Access::read_only,
                     .sub_path = mount.sub_path};
  if (mount.size_bytes)
    co_return failed(Kind::unsupported,
                     {Code::unsupported, 0, "volumes of an engine have no size of their own"});
  // Before that an engine shows volumes as a whole only; docker_parts.cc has what is done instead.
  bool is_part = false;
  if (!mount.sub_path.empty()) {
    auto version = co_await engine_.spoken();
    if (!version) co_return failed(Kind::unavailable, std::move(version.error()));
    is_part = *version < kSubPaths;
    if (is_part && (settings_.rules.remote || settings_.rules.by_network()))
      co_return failed_part(settings_.rules.remote);
    if (is_part) out.volume = out.source;
  }
  auto there = co_await engine_.volume(out.source);
  // Nothing is waited for until it is noted: who makes it, and whether others came, is settled at once.
  bool is_being_made = come_to_volume(out.source);
  // Also for one that is there: should it go before the container is made, the engine makes it again.
  out.labels = {{kManagedLabel, "server"}, {kTenantLabel, owner_of(owner)}, {kClaimLabel, mount.source}};
  if (mount.ephemeral) out.labels[kVolumeGoesLabel] = owner_;
  if (there && may_use(*there, owner, settings_.foreign_volumes)) {
    if (is_part && !has_parts(*there)) co_return failed_whole();
    if (mount.ephemeral && is_foreign(*there))
      log::info("a volume that is not this server's stays with deleteOnSandboxTermination, too",
                {{"volume", out.source}});
    co_return out;
  }
  if (there)
    co_return failed(
        Kind::volume_missing,
        {Code::not_found, 0,
         fmt::format("the engine's volume of this name was not made for these sandboxes; its owner can "
                     "make one with the label {}",
                     kManagedLabel)});
  if (is_away(there.error())) co_return failed(Kind::unavailable, std::move(there.error()));
  if (there.error().code != Code::not_found) co_return failed(Kind::volume_failed, std::move(there.error()));
  if (!mount.create) co_return failed(Kind::volume_missing, {Code::not_found, 0, "there is no such volume"});
  // The engine makes it together with the container.
  if (!is_being_made) {
    made.push_back({out.source, std::make_shared<bool>(false)});
    making_[out.source] = made.back().is_shared;
  }
  // Podman would make it without its labels.
  auto podman = co_await engine_.is_podman();
  auto ready = podman && *podman ? co_await engine_.create_volume(out.source, out.labels) : Result<void>();
  if (!podman) co_return failed(Kind::unavailable, std::move(podman.error()));
  if (!ready)
    co_return failed(is_away(ready.error()) ? Kind::unavailable : Kind::volume_failed,
                     std::move(ready.error()));
  co_return out;
}

bool DockerRuntime::come_to_volume(const std::string& name) {
  std::erase_if(making_, [](const auto& entry) { return entry.second.expired(); });
  auto found = making_.find(name);
  auto is_shared = found == making_.end() ? nullptr : found->second.lock();
  if (is_shared) *is_shared = true;
  return is_shared != nullptr;
}

// An engine makes volumes before it finds out whether the rest can be done. What others came to stays: they
// may have left something in it, and be gone.
Task<> DockerRuntime::forget_made(std::vector<MadeVolume> made) {
  for (const MadeVolume& one : made) {
    if (*one.is_shared) continue;
    auto removed = co_await engine_.remove_volume(one.name);
    if (!removed && removed.error().code != Code::not_found)
      log::warn("a volume that was made for nothing stays",
                {{"volume", one.name}, {"error", removed.error().message}});
  }
}

Task<Created<DockerRuntime::Mounts>> DockerRuntime::find_mounts(const runtime::SandboxSpec& spec,
                                                                std::string image) {
  Mounts out;
  auto found = co_await find_all(spec, out);
  if (found && !out.parts.empty()) found = co_await find_parts(spec.handle, std::move(image), out);
  if (found) co_return out;
  co_await forget_made(std::move(out.made));
  co_return std::unexpected(std::move(found.error()));
}

Task<Result<FileId>> DockerRuntime::find_host_path(std::string path) {
  Missing missing = settings_.make_shared_path ? Missing::told : Missing::made;
  auto found = co_await look_up_patiently(settings_.shared_paths, settings_.state_dir, path, missing);
  if (found || found.error().code != Code::not_found || missing == Missing::made) co_return found;
  auto made = co_await io::with_deadline(kMakeDeadline, "the launcher", settings_.make_shared_path(path));
  // The launcher follows no link. Where one is on the way, this server's user makes it, if he may.
  if (!made && made.error().code != Code::invalid_argument)
    co_return std::unexpected(std::move(made.error()));
  co_return co_await look_up_patiently(settings_.shared_paths, settings_.state_dir, std::move(path),
                                       made ? Missing::told : Missing::made);
}

Task<Created<void>> DockerRuntime::find_all(const runtime::SandboxSpec& spec, Mounts& out) {
  for (size_t i = 0; i < spec.mounts.size(); ++i) {
    const Mount& mount = spec.mounts[i];
    if (is_near_boot(mount.target)) {
      co_await forget_made(std::move(out.made));
      co_return failed(Kind::unsupported,
                       {Code::unsupported, 0,
                        fmt::format("volumes[{}].mountPath: {} is where containers have execd, which serves "
                                    "them; mount the volume neither there nor around it",
                                    i, kBootInside)});
    }
    if (mount.kind == Mount::Kind::host_path && settings_.rules.remote) {
      co_return failed(Kind::unsupported,
                       {Code::unsupported, 0,
                        fmt::format("volumes[{}].host: the engine is on another host, whose directories are "
                                    "not for this server to give away; use a named volume (pvc)",
                                    i)});
    }
    if (mount.kind == Mount::Kind::host_path && settings_.rules.by_network()) {
      co_return failed(
          Kind::unsupported,
          {Code::unsupported, 0,
           fmt::format("volumes[{}].host: a container with a kernel of its own cannot tell which "
                       "directory of the host the engine has mounted; use a named volume (pvc)",
                       i)});
    }
    if (mount.kind == Mount::Kind::host_path) {
      std::string path = mount.source + (mount.sub_path.empty() ? "" : "/" + mount.sub_path);
      auto found = co_await find_host_path(path);
      if (!found) {
        Kind kind = kind_of(found.error(), !mount.sub_path.empty());
        const char* field = kind == Kind::sub_path_refused ? "subPath" : "host.path";
        co_return failed(kind, std::move(found.error()).in(fmt::format("volumes[{}].{}", i, field)));
      }
      out.shown.push_back(*found);
      out.mounts.push_back({.kind = ContainerMount::Kind::host_path,
                            .source = std::move(path),
                            .target = mount.target,
                            .read_only = mount.access == Mount::Access::read_only});
      continue;
    }
    auto volume = co_await find_volume(spec.owner, mount, out.made);
    if (!volume) {
      volume.error().error = std::move(volume.error().error).in(fmt::format("volumes[{}].pvc", i));
      co_return std::unexpected(std::move(volume.error()));
    }
    if (!volume->volume.empty()) {
      out.parts.push_back({i, out.shown.size()});
      out.shown.emplace_back();
    }
    out.mounts.push_back(std::move(*volume));
  }
  co_return Created<void>();
}

// Those that are to go with the last sandbox that has them.
Task<> DockerRuntime::forget_volumes(std::vector<std::string> names) {
  for (const std::string& name : names) {
    auto volume = co_await engine_.volume(name);
    if (!volume || label_of(*volume, kVolumeGoesLabel) != owner_) continue;
    auto removed = co_await engine_.remove_volume(name);
    if (!removed && removed.error().code != Code::wrong_state && removed.error().code != Code::not_found)
      log::warn("a volume that was to go stays until the next start", {{"error", removed.error().message}});
  }
}

Task<Result<std::vector<NamedVolume>>> DockerRuntime::list_volumes(std::string owner) {
  auto volumes = CO_TRY(
      co_await engine_.volumes_with(std::string(kTenantLabel) + "=" + owner_of(owner), Engine::Which::all));
  auto containers = CO_TRY(co_await engine_.labels_of_all(std::string(kOwnerLabel) + "=" + owner_));
  std::map<std::string, uint32_t> users;
  for (const auto& labels : containers) {
    // One that has two parts of a volume has it once.
    auto names = volumes_in(labels);
    for (const std::string& name : std::set<std::string>(names.begin(), names.end())) ++users[name];
  }
  std::vector<NamedVolume> out;
  for (const Volume& volume : volumes) {
    std::string claim = label_of(volume, kClaimLabel);
    if (claim.empty() || engine_name(owner, claim) != volume.name) continue;
    out.push_back({.name = claim,
                   .created = parse_time(volume.created).value_or(WallTime()),
                   .ephemeral = !label_of(volume, kVolumeGoesLabel).empty(),
                   .users = users[volume.name],
                   .size_bytes = {}});
  }
  std::ranges::sort(out, {}, &NamedVolume::name);
  co_return out;
}

Task<Result<void>> DockerRuntime::remove_volume(std::string owner, std::string name) {
  std::string there = engine_name(owner, name);
  auto volume = CO_TRY(co_await engine_.volume(there));
  // What was made by hand is not for clients to remove.
  if (label_of(volume, kTenantLabel) != owner_of(owner))
    co_return fail(Code::not_found, "there is no such volume");
  co_return co_await engine_.remove_volume(there);
}

}  // namespace osb::docker
