// Volumes: the launcher keeps those that have names, and says whether a sandbox may have what was asked for.

#include <fmt/format.h>

#include "base/log.h"
#include "runtime/native/native_runtime.h"
#include "runtime/native/native_sandbox.h"
#include "runtime/native/plan.h"

namespace osb::runtime {
namespace {

using Kind = CreateFailure::Kind;

bool is_kernels(int number) { return number == EACCES || number == EPERM || number == EROFS; }

// By whose mistake it cannot be had.
Kind kind_of(const Mount& mount, const Error& error) {
  bool is_host = mount.kind == Mount::Kind::host_path;
  switch (error.code) {
    case Code::invalid_argument:
      return mount.sub_path.empty() ? Kind::host_path_refused : Kind::sub_path_refused;
    case Code::permission_denied:
      // Of the kernel: whoever owns the place may not do it.
      return is_kernels(error.sys_errno) && is_host ? Kind::host_path_failed : Kind::host_path_refused;
    case Code::not_found:
      return is_host ? Kind::host_path_failed : Kind::volume_missing;
    case Code::unsupported:
      return Kind::unsupported;
    case Code::unavailable:
    case Code::timeout:
      return Kind::unavailable;
    default:
      return is_host ? Kind::host_path_failed : Kind::volume_failed;
  }
}

}  // namespace

// What the launcher refuses by itself of a plan with mounts is one of these.
CreateFailure::Kind kind_of_start(const std::vector<Mount>& mounts, const Error& error) {
  if (error.code == Code::exhausted) return Kind::overloaded;
  bool refused = error.code == Code::permission_denied && !is_kernels(error.sys_errno);
  return refused && !mounts.empty() ? Kind::host_path_refused : Kind::step_failed;
}

// What a plan names is there afterwards, or the caller is told which part of the request cannot be had. The
// launcher looks at all of it again when the sandbox is made.
Task<Created<std::vector<MadeVolume>>> NativeRuntime::ensure_volumes(std::string owner,
                                                                     std::vector<Mount> mounts) {
  std::vector<MadeVolume> made;
  for (size_t i = 0; i < mounts.size(); ++i) {
    const Mount& mount = mounts[i];
    bool is_host = mount.kind == Mount::Kind::host_path;
    auto answer = co_await launcher_.ask(
        launcher::VolumeRequest{volume_step(owner, mount), is_host || mount.create,
                                !is_host && mount.ephemeral, mount.size_bytes.value_or(-1)});
    if (!answer) {
      co_await drop_volumes(std::move(made));
      Kind kind = kind_of(mount, answer.error());
      std::string field = kind == Kind::sub_path_refused ? "subPath" : is_host ? "host.path" : "pvc";
      co_return std::unexpected(
          CreateFailure{kind, std::move(answer).error().in(fmt::format("volumes[{}].{}", i, field))});
    }
    if (answer->body.made) made.push_back({volume_owner(owner), mount.source});
  }
  co_return made;
}

Task<Result<void>> NativeRuntime::make_shared_path(std::string path) {
  // To read it: whether somebody may write there is the engine's affair.
  Mount mount{.source = std::move(path), .target = "/mnt"};
  CO_TRY(co_await launcher_.ask(launcher::VolumeRequest{volume_step("", mount), true, false, -1}));
  co_return Result<void>();
}

// Only what this creation made, and only if nobody has taken it up since.
Task<> NativeRuntime::drop_volumes(std::vector<MadeVolume> made) {
  for (MadeVolume& one : made) {
    auto gone =
        co_await launcher_.ask(launcher::DropVolumeRequest{std::move(one.owner), std::move(one.name)});
    if (!gone && gone.error().code != Code::not_found && gone.error().code != Code::wrong_state)
      log::warn("a volume that was made for a failed sandbox stays", {{"error", gone.error().message}});
  }
}

Task<Result<std::vector<NamedVolume>>> NativeRuntime::list_volumes(std::string owner) {
  std::vector<NamedVolume> volumes;
  owner = volume_owner(owner);
  while (true) {
    auto page = CO_TRY(co_await launcher_.ask(
        launcher::VolumesRequest{owner, volumes.empty() ? std::string() : volumes.back().name}));
    for (auto& one : page.body.volumes) {
      volumes.push_back({.name = std::move(one.name),
                         .created = WallTime(std::chrono::microseconds(one.created)),
                         .ephemeral = one.ephemeral,
                         .users = one.users,
                         .size_bytes = one.size_bytes < 0 ? std::nullopt : std::optional(one.size_bytes)});
    }
    if (page.body.volumes.size() < launcher::kVolumesPage) co_return volumes;
  }
}

Task<Result<void>> NativeRuntime::remove_volume(std::string owner, std::string name) {
  CO_TRY(co_await launcher_.ask(launcher::DropVolumeRequest{volume_owner(owner), std::move(name)}));
  co_return Result<void>();
}

}  // namespace osb::runtime
