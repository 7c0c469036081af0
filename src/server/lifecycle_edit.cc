// Edit: metadata and expiry. Reading and writing are one step under a lock of their own, so that two edits at
// the same time both count, and neither waits for a pause or a start.

#include <algorithm>

#include "base/log.h"
#include "sandbox/failures.h"
#include "server/lifecycle.h"

namespace osb::server {

using sandbox::refuse;

namespace {

// Whether it was stored; gone means that a removal was faster.
Outcome<> stored_or_gone(const Result<bool>& stored, const std::string& id) {
  if (!stored) {
    log::error("cannot store a change of a sandbox", {{"id", id}, {"error", stored.error().message}});
    return refuse(sandbox::internal_error(stored.error()));
  }
  if (!*stored) return refuse(sandbox::not_found(id));
  return {};
}

}  // namespace

Task<Outcome<sandbox::Sandbox>> Lifecycle::patch_metadata(Principal who, std::string id,
                                                          sandbox::MetadataPatch patch) {
  auto guard = co_await edits_.lock(id);
  sandbox::Sandbox row = *CO_TRY(co_await find_living(Scope::of(who), id));
  if (patch.empty()) co_return row;
  row.metadata = CO_TRY(sandbox::apply_patch(std::move(row.metadata), patch));
  CO_TRY(stored_or_gone(co_await store_.set_metadata(id, row.metadata), id));
  tasks_.spawn(write_record(id));
  co_return row;
}

Task<Outcome<WallTime>> Lifecycle::renew(Principal who, std::string id, WallTime expires) {
  auto guard = co_await edits_.lock(id);
  sandbox::SandboxPtr row = CO_TRY(co_await find_living(Scope::of(who), id));
  if (expires <= clock_.now()) co_return refuse(sandbox::expiration_in_the_past());
  if (!row->expires) co_return refuse(sandbox::no_expiration(id));
  if (longest_life_ && expires > row->created + *longest_life_)
    co_return refuse(sandbox::expiration_too_late(row->created + *longest_life_));
  CO_TRY(stored_or_gone(co_await store_.set_expiry(id, expires), id));
  tasks_.spawn(write_record(id));
  if (expires < next_round_) expiry_timer_.cancel();
  co_return expires;
}

Task<Outcome<>> Lifecycle::extend(std::string id, std::chrono::seconds by) {
  auto guard = co_await edits_.lock(id);
  sandbox::SandboxPtr row = CO_TRY(co_await find_living(Scope::everybody(), id));
  WallTime expires = clock_.now() + by;
  if (longest_life_) expires = std::min(expires, row->created + *longest_life_);
  if (!row->expires) co_return refuse(sandbox::no_expiration(id));
  if (expires <= *row->expires) co_return Outcome<>();
  CO_TRY(stored_or_gone(co_await store_.set_expiry(id, expires), id));
  tasks_.spawn(write_record(id));
  co_return Outcome<>();
}

}  // namespace osb::server
