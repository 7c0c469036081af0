// Snapshots: images that the engine makes of containers, named after the snapshot. What the image does not
// have, the sandbox's record, is kept beside it by the server.

#include <algorithm>

#include "base/log.h"
#include "docker/docker_sandbox.h"

namespace osb::docker {
namespace {

constexpr std::string_view kOurs = "/opt/opensandbox", kParent = "/opt";

std::string tag_of(const std::string& snapshot) { return sandbox::image_of_snapshot(snapshot); }

bool has_label(const Image& image, const char* name, const std::string& value) {
  auto found = image.labels.find(name);
  return found != image.labels.end() && found->second == value;
}

bool is_below(std::string_view path, std::string_view directory) {
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

// The variable as the image has it; its name alone when it has none.
std::string of_image(const Image& image, const std::string& variable) {
  auto has_name = [&](const std::string& one) { return one.starts_with(variable + "="); };
  auto found = std::ranges::find_if(image.env, has_name);
  return found == image.env.end() ? variable : *found;
}

// The engine makes the place where execd is shown, and counts that, and the directory that it is in, as
// changes of the container.
std::vector<sandbox::FileChange> without_ours(std::vector<sandbox::FileChange> changes) {
  std::erase_if(changes, [](const auto& one) { return one.path == kOurs || is_below(one.path, kOurs); });
  if (std::ranges::none_of(changes, [](const auto& one) { return is_below(one.path, kParent); }))
    std::erase_if(changes, [](const auto& one) { return one.path == kParent; });
  return changes;
}

}  // namespace

Task<Result<void>> DockerRuntime::capture(std::string handle, std::string snapshot) {
  auto container = CO_TRY(co_await find(handle));
  if (!container.running) co_return fail(Code::not_found, "the container does not run");
  // Before the image: one that is found has its record.
  auto record = files_.read_record(handle);
  CO_TRY(files_.write_snapshot_record(snapshot, record.value_or("")));
  std::string name = tag_of(snapshot);
  size_t colon = name.find(':');
  // Ours have no variables of their sandbox; those of the original server have, secrets among them.
  std::vector<std::string> variables, changes;
  if (!container.labels.contains(kOwnerLabel)) {
    auto image = CO_TRY(co_await engine_.image(container.image));
    for (const auto& [variable, value] : inherited_from(container, image).env)
      variables.push_back(of_image(image, variable));
  }
  if (CO_TRY(co_await engine_.is_podman()))
    changes = CO_TRY(commit_changes(container.labels, variables, owner_, snapshot));
  auto made =
      co_await engine_.commit(container.id, name.substr(0, colon), name.substr(colon + 1),
                              commit_body(container.labels, variables, owner_, snapshot), std::move(changes));
  if (!made) co_return std::unexpected(std::move(made.error()));
  co_return Result<void>();
}

Task<Result<runtime::KeptSnapshot>> DockerRuntime::keep(std::string snapshot) {
  auto image = CO_TRY(co_await engine_.image(tag_of(snapshot)));
  if (!has_label(image, kSnapshotOwnerLabel, owner_))
    co_return fail(Code::not_found, "the image of this name is somebody else's");
  uint64_t below = 0;
  if (!image.parent.empty()) {
    if (auto parent = co_await engine_.image(image.parent)) below = std::min(parent->bytes, image.bytes);
  }
  co_return runtime::KeptSnapshot{.image_id = image.id,
                                  .layers = {},
                                  .bytes = image.bytes - below,
                                  .entries = 0,
                                  .record = files_.read_snapshot_record(snapshot).value_or("")};
}

// What containers still need of the image stays without a name, until the last of them goes.
Task<Result<void>> DockerRuntime::drop(std::string snapshot) {
  std::string name = tag_of(snapshot);
  auto image = co_await engine_.image(name);
  if (!image && image.error().code != Code::not_found) co_return std::unexpected(std::move(image.error()));
  if (image && has_label(*image, kSnapshotOwnerLabel, owner_)) {
    auto removed = co_await engine_.remove_image(name, Engine::Used::untagged);
    // Of one under another snapshot an engine complains when the name has gone.
    bool gone =
        removed || removed.error().code == Code::not_found || removed.error().code == Code::wrong_state;
    if (!gone) co_return removed;
  }
  co_return files_.remove_snapshot_record(snapshot);
}

Task<Result<std::vector<std::string>>> DockerRuntime::list_snapshots() {
  auto images = CO_TRY(co_await engine_.images_with(std::string(kSnapshotOwnerLabel) + "=" + owner_));
  std::vector<std::string> out;
  for (const Image& image : images) {
    auto snapshot = image.labels.find(kSnapshotLabel);
    if (snapshot == image.labels.end()) continue;
    if (std::ranges::find(image.tags, tag_of(snapshot->second)) != image.tags.end())
      out.push_back(snapshot->second);
  }
  co_return out;
}

Task<> DockerRuntime::forget_image(std::string id) {
  if (id.empty()) co_return;
  auto image = co_await engine_.image(id);
  if (!image || !image->tags.empty() || !has_label(*image, kSnapshotOwnerLabel, owner_)) co_return;
  auto removed = co_await engine_.remove_image(id, Engine::Used::refused);
  if (removed || removed.error().code == Code::not_found || removed.error().code == Code::wrong_state)
    co_return;
  log::warn("what is left of a snapshot stays until the next start", {{"error", removed.error().message}});
}

Task<Result<std::vector<sandbox::FileChange>>> DockerRuntime::changes(std::string handle) {
  auto container = CO_TRY(co_await find(handle));
  auto out = CO_TRY(co_await engine_.changes(container.id));
  co_return without_ours(std::move(out));
}

// What a server that was killed could not take away: images without a name that nothing uses, volumes that
// were to go with their sandboxes, and volumes with an execd that nothing needs.
Task<> DockerRuntime::sweep() {
  if (settings_.adopt) co_await sweep_sidecars();
  auto images = co_await engine_.images_with(std::string(kSnapshotOwnerLabel) + "=" + owner_);
  if (images) {
    for (const Image& image : *images) {
      if (image.tags.empty()) (void)co_await engine_.remove_image(image.id, Engine::Used::refused);
    }
  }
  auto volumes =
      co_await engine_.volumes_with(std::string(kVolumeGoesLabel) + "=" + owner_, Engine::Which::unused);
  if (volumes) {
    for (const Volume& volume : *volumes) (void)co_await engine_.remove_volume(volume.name);
  }
  co_await sweep_boot_volumes();
}

}  // namespace osb::docker
