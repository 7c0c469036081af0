#include "server/runtime_calls.h"

#include <fmt/format.h>

#include "api/error_catalogue.h"

namespace osb::server {
namespace {

using runtime::CreateFailure;
using runtime::End;
using store::State;
using Created = std::expected<std::string, CreateFailure>;

// Far above what either takes; beyond it the runtime is stuck and the caller long gone.
constexpr auto kCreateLimit = std::chrono::seconds(120);
constexpr auto kDestroyLimit = std::chrono::seconds(60);

io::Task<Result<Created>> as_result(io::Task<Created> task) { co_return co_await std::move(task); }

}  // namespace

runtime::SandboxSpec spec_of(const store::Sandbox& row, api::CreatePlan plan) {
  runtime::SandboxSpec spec;
  spec.id = row.id;
  spec.handle = row.handle;
  spec.image = std::move(plan.image);
  spec.limits = {plan.limits.cpu_millis, plan.limits.memory_bytes,  plan.limits.pids,
                 plan.limits.disk_bytes, plan.limits.io_read_bytes, plan.limits.io_write_bytes,
                 plan.limits.open_files};
  spec.entrypoint = api::words_of(std::move(plan.entrypoint));
  spec.read_only_root = plan.read_only_root;
  spec.env = std::move(plan.env);
  std::erase_if(spec.env, [](const auto& pair) { return pair.first == "OPENSANDBOX_ID"; });
  spec.env.emplace_back("OPENSANDBOX_ID", row.id);
  return spec;
}

api::ApiError to_api_error(const CreateFailure& failure) {
  switch (failure.kind) {
    case CreateFailure::Kind::image_not_found:
      return api::image_not_found(failure.error);
    case CreateFailure::Kind::bad_entrypoint:
      return api::invalid_entrypoint(failure.error);
    case CreateFailure::Kind::entry_ended:
      return api::entry_ended(failure.error);
    case CreateFailure::Kind::bad_limit:
      return api::bad_limit(failure.error);
    case CreateFailure::Kind::overloaded:
      return api::too_many_creates(failure.error.message);
    case CreateFailure::Kind::step_failed:
      return api::start_failed(failure.error);
  }
  return api::start_failed(failure.error);
}

store::Status status_of(const End& end, WallTime at) {
  auto failed = [&](std::string_view reason, std::string sentence) {
    return store::Status{State::failed, std::string(reason), end.detail.empty() ? sentence : end.detail, at};
  };
  switch (end.kind) {
    case End::Kind::exited:
      if (end.number != 0) {
        return failed("ENTRYPOINT_FAILED", fmt::format("The entry process exited with code {}.", end.number));
      }
      return {State::terminated, "ENTRYPOINT_EXITED",
              end.detail.empty() ? "The entry process exited with code 0." : end.detail, at};
    case End::Kind::signalled:
      return failed("KILLED_BY_SIGNAL",
                    fmt::format("The entry process was killed by signal {}.", end.number));
    case End::Kind::out_of_memory:
      return failed("OUT_OF_MEMORY", "The entry process was killed because the sandbox used up its memory.");
    case End::Kind::host_restarted:
      return failed("HOST_RESTARTED", "The host was restarted while the sandbox ran.");
    case End::Kind::lost:
      break;
  }
  return failed("LOST", "The sandbox ended while nobody watched; why is not known.");
}

io::Task<Created> create_in_time(runtime::Runtime& runtime, runtime::SandboxSpec spec) {
  auto result =
      co_await io::with_deadline(kCreateLimit, "create sandbox", as_result(runtime.create(std::move(spec))));
  if (!result)
    co_return std::unexpected(CreateFailure{CreateFailure::Kind::step_failed, std::move(result.error())});
  co_return std::move(*result);
}

io::Task<Result<void>> destroy_in_time(runtime::Runtime& runtime, std::string handle) {
  co_return co_await io::with_deadline(kDestroyLimit, "remove a sandbox", runtime.destroy(std::move(handle)));
}

}  // namespace osb::server
