#include "docker/engine_identity.h"

#include <boost/json.hpp>

#include "docker/engine.h"

namespace osb::docker {
namespace {

constexpr auto kQuestion = std::chrono::seconds(10);

}  // namespace

// Whatever it refuses to tell is not held against it. Podman has another id for each question.
Task<Result<void>> Engine::recognise(EngineVersion version) {
  if (!identity_ || version.podman) co_return Result<void>();
  std::string prefix = "/v" + to_string(CO_TRY(choose_version(version)));
  auto info = co_await io::with_deadline(kQuestion, "the Docker engine",
                                         ask({.method = "GET", .path = prefix + "/info"}));
  if (!info && (info.error().code == Code::unavailable || info.error().code == Code::timeout))
    co_return std::unexpected(std::move(info.error()));
  std::string id = info ? parse_engine_id(*info) : "";
  if (id.empty() || identity_->is_known(id)) co_return Result<void>();
  auto list = CO_TRY(
      co_await io::with_deadline(kQuestion, "the Docker engine", ask(list_call(prefix, {identity_->label}))));
  co_return identity_->judge(id, CO_TRY(parse_labels_of_list(list)));
}

Task<Result<void>> Engine::recognise_again() {
  if (!version_) co_return Result<void>();  // it will be asked with the next call
  auto same = co_await recognise(*version_);
  if (!same) version_.reset();
  co_return same;
}

}  // namespace osb::docker
