// Directories of volumes (subPath), with engines that show volumes as a whole only. Such an engine is told
// the directory's name on its own host instead, and follows links on the way to it, which sandboxes can make.
// So it is as with directories of the host (host_path.h): somebody looks first, without following links, and
// execd says from inside the sandbox what it was that the engine has mounted, before anything else runs
// there.
//
// This server may not look into the engine's files. A container with the whole volumes does: execd is all
// that runs in it, makes what is missing, tells what it has found and ends. The container stays as long as
// the sandbox, for the engine knows by it that the volumes are in use.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstring>

#include "base/strings.h"
#include "docker/docker_sandbox.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

namespace bj = boost::json;
using Kind = CreateFailure::Kind;

constexpr auto kLookDeadline = std::chrono::seconds(30);
constexpr char kPartsInside[] = "/opt/opensandbox/volumes";

std::unexpected<CreateFailure> failed(Kind kind, Error error) {
  return std::unexpected(CreateFailure{kind, std::move(error)});
}

std::unexpected<CreateFailure> failed_step(Error error) {
  bool away = error.code == Code::unavailable || error.code == Code::timeout;
  return failed(away ? Kind::unavailable : Kind::volume_failed,
                std::move(error).in("look for a directory of a volume"));
}

struct Holder {
  std::string image, handle, owner, execd;
  std::vector<ContainerMount> volumes = {};
};

std::string place_of(size_t i) { return fmt::format("{}/{}", kPartsInside, i); }

// Root, with the one right that files of others need, and nothing else.
std::string holder_body(const Holder& holder) {
  bj::array mounts{bj::object{{"Type", "bind"},
                              {"Source", holder.execd},
                              {"Target", std::string(kBootInside) + "/execd"},
                              {"ReadOnly", true}}};
  bj::array words;
  for (size_t i = 0; i < holder.volumes.size(); ++i) {
    const ContainerMount& volume = holder.volumes[i];
    bj::object labels;
    for (const auto& [name, value] : volume.labels) labels[name] = value;
    mounts.push_back(
        bj::object{{"Type", "volume"},
                   {"Source", volume.source},
                   {"Target", place_of(i)},
                   {"VolumeOptions", bj::object{{"NoCopy", true}, {"Labels", std::move(labels)}}}});
    words.emplace_back("--part=" + place_of(i) + "/" + volume.sub_path);
  }
  bj::object host{{"NetworkMode", "none"},
                  {"Mounts", std::move(mounts)},
                  {"CapDrop", bj::array{"ALL"}},
                  {"CapAdd", bj::array{"DAC_OVERRIDE"}},
                  {"SecurityOpt", bj::array{"no-new-privileges=true"}},
                  {"ReadonlyRootfs", true},
                  {"RestartPolicy", bj::object{{"Name", "no"}}},
                  {"LogConfig", bj::object{{"Type", "json-file"}}}};
  return json::print(bj::object{{"Image", holder.image},
                                {"User", "0"},
                                {"Entrypoint", bj::array{std::string(kBootInside) + "/execd"}},
                                {"Cmd", std::move(words)},
                                {"Healthcheck", bj::object{{"Test", bj::array{"NONE"}}}},
                                {"Labels", bj::object{{kOwnerLabel, holder.owner},
                                                      {kHandleLabel, holder.handle},
                                                      {kHolderLabel, holder.handle},
                                                      {kVolumesLabel, "[]"},
                                                      {kEgressLabel, "none"},
                                                      {kBootLabel, ""}}},
                                {"HostConfig", std::move(host)}});
}

// "<device> <inode>", or "0 <errno>": see execd/container.h.
Created<FileId> id_in(std::string_view line) {
  size_t blank = line.find(' ');
  auto device = parse_number<uint64_t>(line.substr(0, blank));
  auto second = blank == line.npos ? std::nullopt : parse_number<uint64_t>(line.substr(blank + 1));
  if (!device || !second) return failed(Kind::volume_failed, {Code::corrupt, 0, "execd says something else"});
  if (*device != 0) return FileId{*device, *second};
  int reason = static_cast<int>(*second);
  if (reason == ENOTDIR || reason == ELOOP)
    return failed(
        Kind::sub_path_refused,
        {Code::invalid_argument, 0, "a symbolic link or a file is on the way; only directories are used"});
  return failed(Kind::volume_failed, {Code::internal, reason,
                                      std::string("the directory cannot be made: ") + std::strerror(reason)});
}

}  // namespace

// What it tells. It is left for remove_holder(), also after a failure.
Task<Result<std::string>> DockerRuntime::ask_holder(std::string handle, std::string body) {
  auto made = CO_TRY(co_await engine_.create(holder_name(handle), "", std::move(body)));
  CO_TRY(co_await engine_.start(made));
  int status = CO_TRY(co_await io::with_deadline(kLookDeadline, "execd", engine_.wait(made)));
  auto told = CO_TRY(co_await engine_.logs(made));
  if (status != 0) co_return fail(Code::internal, "it has ended with code " + std::to_string(status));
  co_return told;
}

Task<Created<void>> DockerRuntime::find_parts(std::string handle, std::string image, Mounts& mounts) {
  Holder holder{
      .image = std::move(image), .handle = handle, .owner = owner_, .execd = files_.execd_on_host()};
  for (const Mounts::Part& part : mounts.parts) holder.volumes.push_back(mounts.mounts[part.mount]);
  auto told = co_await ask_holder(handle, holder_body(holder));
  std::string text = told.value_or("");
  auto lines = split(text, '\n');
  Created<void> found;
  if (!told && sees_other_files(told.error(), holder.execd))
    found = failed_step({Code::internal, 0, "the Docker engine does not see the files of this host"});
  else if (!told)
    found = failed_step(std::move(told.error()));
  else if (lines.size() != mounts.parts.size() + 1)
    found = failed_step({Code::corrupt, 0, "execd says something else"});
  for (size_t i = 0; found && i < mounts.parts.size(); ++i) {
    ContainerMount& mount = mounts.mounts[mounts.parts[i].mount];
    std::string field = fmt::format("volumes[{}].subPath", mounts.parts[i].mount);
    auto volume = co_await engine_.volume(mount.volume);
    auto id = id_in(lines[i]);
    if (!volume) {
      found = failed_step(std::move(volume.error()));
    } else if (!id) {
      found = failed(id.error().kind, std::move(id.error().error).in(field));
    } else if (!volume->mountpoint.starts_with('/')) {
      found = failed(Kind::sub_path_driver,
                     {Code::unsupported, 0, field + ": the engine does not say where this volume is"});
    } else {
      mounts.shown[mounts.parts[i].shown] = *id;
      mount.kind = ContainerMount::Kind::host_path;
      mount.source = volume->mountpoint + "/" + mount.sub_path;
      mount.sub_path.clear();
    }
  }
  if (!found) (void)co_await remove_holder(std::move(handle));
  co_return found;
}

// Fine when there is none.
Task<Result<void>> DockerRuntime::remove_holder(std::string handle) {
  auto there = co_await engine_.inspect(holder_name(handle));
  if (!there && there.error().code == Code::not_found) co_return Result<void>();
  if (!there) co_return std::unexpected(std::move(there.error()));
  auto owner = there->labels.find(kOwnerLabel);
  if (owner == there->labels.end() || owner->second != owner_) co_return Result<void>();
  co_return co_await engine_.remove(there->id);
}

}  // namespace osb::docker
