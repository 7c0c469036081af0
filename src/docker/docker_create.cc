// Asking the engine for a container.

#include "docker/create_failures.h"
#include "docker/docker_sandbox.h"
#include "docker/limit_refusal.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;

// In the words of Docker and of Podman, which have different statuses for it.
bool says_name_is_taken(const Error& error) {
  return error.message.find("name") != std::string::npos && error.message.find("in use") != std::string::npos;
}

}  // namespace

Task<Created<void>> DockerRuntime::check_network(const runtime::SandboxSpec& spec) {
  const std::string& name = settings_.rules.network_mode;
  bool has_it = !spec.network || settings_.rules.remote;  // there its sidecar
  if (!has_it || !names_a_network(name)) co_return Created<void>();
  auto network = co_await engine_.network(name);
  if (network) co_return Created<void>();
  if (network.error().code != Code::not_found)
    co_return failed_step(std::move(network.error()), "look at the containers' network");
  // Nothing that the client could change.
  co_return failed(Kind::step_failed,
                   {Code::internal, 0,
                    "docker.network_mode: the Docker engine has no network " + name +
                        "; make it (docker network create " + name + "), or name another one"});
}

// Or a second one.
Task<Result<std::string>> DockerRuntime::create_under_name(std::string name, const std::string& handle,
                                                           std::string platform, std::string body,
                                                           bool& misnamed) {
  auto made = co_await engine_.create(name, platform, body);
  misnamed = !made && says_name_is_taken(made.error());
  if (!misnamed) co_return made;
  co_return co_await engine_.create(second_name(name, handle), platform, std::move(body));
}

// With the image by the name that the client has for it, which is what whoever looks at the engine wants to
// see. A name may mean another image by now than the one that was looked at: then by its id.
Task<Result<std::string>> DockerRuntime::create_as_called(const runtime::SandboxSpec& spec, Image image,
                                                          const Boot& boot, const Mounts& mounts,
                                                          bool& misnamed) {
  ContainerRules rules = settings_.rules;
  if (spec.limits.cpu_millis) rules.processors = co_await engine_.processors();
  rules.sidecar = boot.sidecar;
  bool podman = CO_TRY(co_await engine_.is_podman());
  if (podman && !rules.seccomp_file.empty()) rules.seccomp_profile = rules.seccomp_file;
  std::string name = container_name(spec.id.empty() ? spec.handle : spec.id);
  auto create = [&] {
    return create_under_name(name, spec.handle, spec.image.platform,
                             container_body(spec, image, owner_, boot.source, rules, mounts.mounts),
                             misnamed);
  };
  // A snapshot's name is nobody's; Podman does not tell the id of a container's image.
  if (spec.image.id.empty() && !podman) {
    image.name = spec.image.reference;
    auto made = co_await create();
    bool gone = !made && made.error().code == Code::not_found && says_no_image(made.error().message);
    if (!made && !gone) co_return made;
    if (made) {
      if (CO_TRY(co_await engine_.inspect(*made)).image == image.id) co_return made;
      CO_TRY(co_await engine_.remove(*made));
    }
    image.name.clear();
  }
  co_return co_await create();
}

Task<Created<std::string>> DockerRuntime::ask_for_container(const runtime::SandboxSpec& spec,
                                                            const Image& image, const Boot& boot,
                                                            const Mounts& mounts, bool& misnamed) {
  auto podman = co_await engine_.is_podman();
  if (podman && *podman && spec.limits.gpus) co_return failed(Kind::bad_limit, no_gpus_by_podman());
  auto made = co_await create_as_called(spec, image, boot, mounts, misnamed);
  if (made) co_return std::move(*made);
  Error error = std::move(made.error());
  if (error.code == Code::not_found && says_no_image(error.message))
    co_return failed(Kind::image_not_found, std::move(error));
  if (sees_other_files(error, boot.source))
    co_return failed(Kind::step_failed, {Code::internal, 0, kOtherFiles});
  if (names_part_of_volume(error.message, mounts.mounts)) co_return failed_part();
  if (auto refused = limit_refusal(spec.limits, error))
    co_return failed(Kind::bad_limit, std::move(*refused));
  co_return failed_step(std::move(error), "create the container");
}

Task<Created<DockerRuntime::SandboxPtr>> DockerRuntime::make_container(const runtime::SandboxSpec& spec,
                                                                       const Image& image, const Boot& boot,
                                                                       const Mounts& mounts) {
  const std::string& handle = spec.handle;
  bool misnamed = false;
  auto made = co_await ask_for_container(spec, image, boot, mounts, misnamed);
  if (!made) co_return std::unexpected(std::move(made.error()));
  auto sandbox = std::make_shared<Sandbox>(handle, *made, executor_);
  for (const ContainerMount& mount : mounts.mounts) {
    if (mount.kind == ContainerMount::Kind::volume) sandbox->volumes.push_back(mount.source);
    if (!mount.volume.empty()) sandbox->volumes.push_back(mount.volume);
  }
  sandbox->has_holder = !mounts.parts.empty();
  if (!spec.image.id.empty()) sandbox->image = image.id;
  sandbox->id = spec.id;
  sandbox->misnamed = misnamed;
  sandbox->has_policy = spec.network.has_value();
  sandbox->secret = boot.secret;
  sandbox->token = boot.token;
  sandbox->sidecar = boot.sidecar;
  if (settings_.rules.remote) sandbox->boot = boot.source;
  co_return sandbox;
}

}  // namespace osb::docker
