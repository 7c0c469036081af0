#include "server/create_once.h"

#include <algorithm>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "base/ids.h"
#include "base/log.h"
#include "sandbox/failures.h"

namespace osb::server {
namespace {

constexpr size_t kMaxKey = 255;

template <class T>
api::ApiResult<T> stored(Result<T> result) {
  if (result) return std::move(*result);
  log::error("cannot look for an earlier create", {{"error", result.error().message}});
  return api::refuse(api::to_api_error(sandbox::start_failed_on_disk(result.error())));
}

}  // namespace

api::ApiResult<> CreateOnce::check_key(std::string_view key) {
  bool visible = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
  if (!key.empty() && key.size() <= kMaxKey && visible) return {};
  return api::refuse(
      api::invalid_parameter("Idempotency-Key", "must be 1 to 255 visible characters of ASCII"));
}

io::Task<CreateOnce::Guard> CreateOnce::lock(const sandbox::Principal& who, const std::string& key) {
  return locks_.lock(who.owner + " " + key);
}

io::Task<api::ApiResult<CreateOnce::Found>> CreateOnce::find(sandbox::Principal who, std::string key,
                                                             std::string fingerprint) {
  WallTime now = clock_.now();
  auto earlier = CO_TRY(stored(co_await store_.find_create_key(who.owner, key, now)));
  if (earlier) {
    auto scope = sandbox::Scope::of(who);
    auto row = CO_TRY(stored(co_await store_.find(scope, earlier->sandbox_id)));
    auto events = CO_TRY(stored(co_await store_.events(scope, earlier->sandbox_id, 1)));
    // One that failed and could not be removed yet was never anybody's answer.
    bool failed = row != nullptr && row->status.state == sandbox::State::stopping && events.empty();
    bool made = (row != nullptr && !failed) || !events.empty();
    if (made && earlier->fingerprint != fingerprint)
      co_return api::refuse(api::key_reused("it came with another request before"));
    if (made && row == nullptr) co_return api::refuse(api::key_reused("the sandbox that it made is gone"));
    if (made) co_return Found{.sandbox = std::move(row)};
  }
  store::CreateKey mine{.owner = who.owner,
                        .key = std::move(key),
                        .fingerprint = std::move(fingerprint),
                        .sandbox_id = new_uuid7(),
                        .at = now};
  auto kept = co_await store_.put_create_key(mine);
  if (!kept) co_return api::refuse(api::to_api_error(sandbox::start_failed_on_disk(kept.error())));
  co_return Found{.id = std::move(mine.sandbox_id)};
}

}  // namespace osb::server
