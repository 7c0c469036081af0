#include "server/runtime_calls.h"

#include <fmt/format.h>

#include "base/hooks_variable.h"
#include "sandbox/failures.h"
#include "sandbox/volume_failures.h"
#include "server/kept_policy.h"
#include "server/record.h"

namespace osb::server {
namespace {

using runtime::Created;
using runtime::CreateFailure;
using runtime::End;
using sandbox::Reason;
using sandbox::State;

// Far above what either takes; beyond it the runtime is stuck and the caller long gone.
constexpr auto kCreateLimit = std::chrono::seconds(120);
// An image may have to come first. Who brings it gives up by itself when nothing comes any more.
constexpr auto kPrepareLimit = std::chrono::hours(6);
constexpr auto kDestroyLimit = std::chrono::seconds(60);

template <class T>
io::Task<Result<Created<T>>> as_result(io::Task<Created<T>> task) {
  co_return co_await std::move(task);
}

template <class T>
io::Task<Created<T>> in_time(io::Duration limit, io::Task<Created<T>> task) {
  auto result = co_await io::with_deadline(limit, "create sandbox", as_result(std::move(task)));
  // What it has done meanwhile is not known.
  if (!result)
    co_return std::unexpected(CreateFailure{CreateFailure::Kind::unavailable, std::move(result.error())});
  co_return std::move(*result);
}

runtime::Mount mount_of(const sandbox::Volume& volume) {
  using Backend = sandbox::Volume::Backend;
  using Kind = runtime::Mount::Kind;
  using Access = runtime::Mount::Access;
  return {.source = volume.source,
          .target = volume.mount_path,
          .access = volume.read_only ? Access::read_only : Access::read_write,
          .kind = volume.backend == Backend::host    ? Kind::host_path
                  : volume.backend == Backend::claim ? Kind::volume
                                                     : Kind::object_store,
          .sub_path = volume.sub_path,
          .create = volume.create,
          .ephemeral = volume.ephemeral,
          .size_bytes = volume.size_bytes};
}

// Those whose names others may choose, without the beginning that all of them have.
std::map<std::string, std::string> shown_extensions(const std::map<std::string, std::string>& all) {
  constexpr std::string_view kPrefix = "opensandbox.extensions.";
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : all) {
    if (name.starts_with(kPrefix)) out[name.substr(kPrefix.size())] = value;
  }
  return out;
}

}  // namespace

runtime::SandboxSpec spec_of(const sandbox::Sandbox& row, const sandbox::CreateRequest& request) {
  runtime::SandboxSpec spec;
  spec.handle = row.handle;
  spec.id = row.id;
  spec.labels = row.metadata;
  spec.life.emplace();
  spec.life->expires = row.expires;
  spec.life->extensions = shown_extensions(row.extensions);
  if (auto renewal = row.extensions.find(sandbox::kRenewExtension); renewal != row.extensions.end())
    spec.life->renewal = renewal->second;
  spec.image.reference = request.image;
  if (request.base) {
    spec.image.reference = request.base->image;
    spec.image.id = request.base->image_id;
    spec.image.layers = request.base->layers;
  }
  spec.image.platform = request.platform;
  if (auto policy = request.extensions.find(sandbox::kPullPolicyExtension);
      policy != request.extensions.end())
    spec.image.pull = runtime::pull_from(policy->second);
  if (request.image_auth) spec.image.auth = {request.image_auth->username, request.image_auth->password};
  spec.limits = request.limits;
  spec.read_only_root = request.read_only_root;
  spec.owner = row.owner;
  spec.shm_bytes = request.shm_bytes;
  for (const sandbox::Volume& volume : request.volumes) spec.mounts.push_back(mount_of(volume));
  spec.network = network_of(request);
  return spec;
}

std::optional<runtime::NetworkPolicy> network_of(const sandbox::CreateRequest& request) {
  if (!request.network_policy) return std::nullopt;
  runtime::NetworkPolicy policy;
  policy.allow_the_rest = request.network_policy->allow_the_rest;
  for (const auto& rule : request.network_policy->egress)
    policy.egress.push_back({.allow = rule.allow, .target = rule.target});
  return policy;
}

runtime::Claim claim_of(const sandbox::Sandbox& row, sandbox::CreateRequest request) {
  runtime::Claim claim;
  claim.id = row.id;
  claim.record = to_record(row, request.env, request.volumes, request.hooks);
  // For whoever copies it while nobody can be asked what it may reach.
  if (auto network = network_of(request))
    claim.record = with_network(std::move(claim.record), to_text(network));
  claim.entrypoint = sandbox::words_of(std::move(request.entrypoint));
  claim.env = std::move(request.env);
  std::erase_if(claim.env, [](const auto& pair) { return pair.first == "OPENSANDBOX_ID"; });
  claim.env.emplace_back("OPENSANDBOX_ID", row.id);
  if (!request.hooks.empty()) claim.env.emplace_back(kHooksVariable, std::move(request.hooks));
  return claim;
}

sandbox::Failure to_failure(const CreateFailure& failure) {
  switch (failure.kind) {
    case CreateFailure::Kind::image_not_found:
      return sandbox::image_not_found(failure.error);
    case CreateFailure::Kind::image_unreachable:
      return sandbox::image_unreachable(failure.error);
    case CreateFailure::Kind::image_refused:
      return sandbox::image_refused(failure.error);
    case CreateFailure::Kind::image_invalid:
      return sandbox::image_invalid(failure.error);
    case CreateFailure::Kind::bad_entrypoint:
      return sandbox::invalid_entrypoint(failure.error);
    case CreateFailure::Kind::entry_ended:
      return sandbox::entry_ended(failure.error);
    case CreateFailure::Kind::bad_limit:
      return sandbox::bad_limit(failure.error);
    case CreateFailure::Kind::unsupported:
      return sandbox::unsupported_by_runtime(failure.error);
    case CreateFailure::Kind::host_path_refused:
      return sandbox::host_path_refused(failure.error);
    case CreateFailure::Kind::sub_path_refused:
      return sandbox::sub_path_refused(failure.error);
    case CreateFailure::Kind::sub_path_driver:
      return sandbox::sub_path_driver(failure.error);
    case CreateFailure::Kind::host_path_failed:
      return sandbox::host_path_failed(failure.error);
    case CreateFailure::Kind::volume_missing:
      return sandbox::volume_missing(failure.error);
    case CreateFailure::Kind::volume_failed:
      return sandbox::volume_failed(failure.error);
    case CreateFailure::Kind::unavailable:
      return sandbox::runtime_away(failure.error);
    case CreateFailure::Kind::overloaded:
      return sandbox::too_many_creates(failure.error.message);
    case CreateFailure::Kind::step_failed:
      return sandbox::start_failed(failure.error);
  }
  return sandbox::start_failed(failure.error);
}

sandbox::Status status_of(const End& end, WallTime at) {
  auto failed = [&](Reason reason, std::string sentence) {
    if (!end.detail.empty()) sentence = end.detail;
    return sandbox::Status{State::failed, reason, std::move(sentence), at};
  };
  switch (end.kind) {
    case End::Kind::exited:
      if (end.number != 0) {
        return failed(Reason::entrypoint_failed,
                      fmt::format("The entry process exited with code {}.", end.number));
      }
      return {State::terminated, Reason::entrypoint_exited,
              end.detail.empty() ? "The entry process exited with code 0." : end.detail, at};
    case End::Kind::signalled:
      return failed(Reason::killed_by_signal,
                    fmt::format("The entry process was killed by signal {}.", end.number));
    case End::Kind::out_of_memory:
      return failed(Reason::out_of_memory,
                    "The entry process was killed because the sandbox used up its memory.");
    case End::Kind::host_restarted:
      return failed(Reason::host_restarted, "The host was restarted while the sandbox ran.");
    case End::Kind::lost:
      break;
  }
  return failed(Reason::lost, "The sandbox ended while nobody watched; why is not known.");
}

io::Task<Created<runtime::PreparedPtr>> prepare_in_time(runtime::Runtime& runtime,
                                                        runtime::SandboxSpec spec) {
  if (auto found = runtime::obstacle(spec, runtime.capabilities())) {
    using Kind = CreateFailure::Kind;
    co_return std::unexpected(CreateFailure{found->is_limit ? Kind::bad_limit : Kind::unsupported,
                                            {Code::unsupported, 0, found->field + ": " + found->why}});
  }
  co_return co_await in_time(kPrepareLimit, runtime.prepare(std::move(spec)));
}

io::Task<Created<std::string>> start_in_time(runtime::Runtime& runtime, runtime::PreparedPtr prepared,
                                             runtime::Claim claim) {
  return in_time(kCreateLimit, runtime.start(std::move(prepared), std::move(claim)));
}

io::Task<Created<runtime::Warm>> warm_in_time(runtime::Runtime& runtime, runtime::PreparedPtr prepared,
                                              std::string record) {
  return in_time(kCreateLimit, runtime.warm(std::move(prepared), std::move(record)));
}

io::Task<> wait_for_end(runtime::Runtime& runtime, std::string handle) {
  (void)co_await runtime.wait(std::move(handle));
}

io::Task<Result<void>> destroy_in_time(runtime::Runtime& runtime, std::string handle) {
  co_return co_await io::with_deadline(kDestroyLimit, "remove a sandbox", runtime.destroy(std::move(handle)));
}

}  // namespace osb::server
