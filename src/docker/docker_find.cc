// Which container is whose, and what it is called. The owner and the handle in its labels say whose it is;
// its name is for people, who know the sandbox's id.

#include "base/log.h"
#include "docker/docker_sandbox.h"

namespace osb::docker {
namespace {

std::string filter(const char* label, const std::string& value) { return std::string(label) + "=" + value; }

bool is_set(const Labels& labels, const char* name) {
  auto label = labels.find(name);
  return label != labels.end() && !label->second.empty();
}

}  // namespace

bool DockerRuntime::is_ours(const Container& container, const std::string& handle) const {
  auto owner = container.labels.find(kOwnerLabel);
  auto ours = container.labels.find(kHandleLabel);
  return owner != container.labels.end() && owner->second == owner_ && ours != container.labels.end() &&
         ours->second == handle;
}

// By its labels, since containers of the build before have other names. What this process holds it knows the
// engine's id of.
Task<Result<std::string>> DockerRuntime::look_up(std::string handle) {
  auto known = sandboxes_.find(handle);
  if (known != sandboxes_.end()) co_return known->second->container;
  auto ours =
      CO_TRY(co_await engine_.containers_with({filter(kOwnerLabel, owner_), filter(kHandleLabel, handle)}));
  // What polices it on another host has its handle, too, and so has what holds its volumes.
  std::erase_if(ours, [](const Listed& one) {
    return is_set(one.labels, kSidecarLabel) || is_set(one.labels, kHolderLabel);
  });
  if (!ours.empty()) co_return ours.front().id;
  if (settings_.adopt || files_.is_taken_over(handle)) {
    for (Listed& one : CO_TRY(co_await engine_.containers_with({kIdLabel}))) {
      if (is_of_others(one.labels) && handle_of(one.labels.at(kIdLabel)) == handle)
        co_return std::move(one.id);
    }
  }
  co_return fail(Code::not_found, "there is no container of this sandbox");
}

Task<Result<std::string>> DockerRuntime::look_up_sidecar(std::string handle) {
  auto ours =
      CO_TRY(co_await engine_.containers_with({filter(kOwnerLabel, owner_), filter(kHandleLabel, handle)}));
  for (Listed& one : ours) {
    if (is_set(one.labels, kSidecarLabel)) co_return std::move(one.id);
  }
  co_return fail(Code::not_found, "there is no egress of this sandbox");
}

Task<Result<Container>> DockerRuntime::find(std::string handle) {
  co_return co_await find_again(handle, CO_TRY(co_await look_up(handle)));
}

Task<Result<Container>> DockerRuntime::find_again(std::string handle, std::string identity) {
  if (identity.empty()) co_return fail(Code::not_found, "it never had a container");
  auto container = CO_TRY(co_await engine_.inspect(identity));
  if (container.id != identity || (!is_ours(container, handle) && !is_inherited(container, handle)))
    co_return fail(Code::not_found, "there is no container of this sandbox");
  co_return container;
}

// Nobody waits for it: whatever it is called, it is found by its labels.
Task<> DockerRuntime::name_after(SandboxPtr sandbox, std::string id) {
  auto warn = [&](const Error& error) {
    if (error.code != Code::not_found)
      log::warn("a container keeps another name than its sandbox", {{"id", id}, {"error", error.message}});
  };
  // First: by the name of the other one the next server sees that there was something to do.
  if (!sandbox->sidecar.empty()) {
    auto beside = co_await engine_.rename(sandbox->sidecar, sidecar_name(id));
    if (!beside) warn(beside.error());
  }
  auto renamed = co_await engine_.rename(sandbox->container, container_name(id));
  if (!renamed) co_return warn(renamed.error());
  sandbox->id = id;
  sandbox->misnamed = false;
}

void DockerRuntime::pass_name_on(const std::string& id) {
  for (const auto& [handle, sandbox] : sandboxes_) {
    if (sandbox->id == id && sandbox->misnamed && !id.empty()) tasks_.spawn(name_after(sandbox, id));
  }
}

}  // namespace osb::docker
