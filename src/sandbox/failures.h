#pragma once

// Everything that can go wrong with sandboxes, each made in one place so that kind, code and wording cannot
// drift apart.

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "sandbox/failure.h"

namespace osb::sandbox {

Failure not_found(std::string_view id);
Failure invalid_label(std::string_view key, std::string why);

// Making one.
Failure image_not_found(const Error& error);
Failure image_unreachable(const Error& error);
Failure image_refused(const Error& error);
Failure image_invalid(const Error& error);
Failure invalid_entrypoint(const Error& error);
Failure entry_ended(const Error& error);
Failure bad_limit(const Error& error);
Failure unsupported_by_runtime(const Error& error);
Failure unknown_runtime(std::string_view known);
Failure runtime_away(const Error& error);
Failure start_failed(const Error& error);
Failure start_failed_on_disk(const Error& error);  // for errors of the service's own disk
Failure too_many_creates(std::string why);

// Changing one.
Failure expiration_in_the_past();
Failure expiration_too_late(WallTime latest);
Failure no_expiration(std::string_view id);
Failure not_running(std::string_view id, std::string_view state, std::string_view message);
Failure not_paused(std::string_view id, std::string_view state);
Failure paused(std::string_view id, std::string_view state);  // to whoever wants to talk to it
Failure pause_unsupported(const Error& error);
Failure pause_failed(const Error& error);
Failure resume_failed(const Error& error);
Failure delete_failed(const Error& error);

// Snapshots.
Failure snapshot_not_found(std::string_view id);
Failure snapshot_not_ready(std::string_view id, std::string_view state, std::string_view message);
Failure snapshot_of_wrong_state(std::string_view id, std::string_view state);
// `why`: "" when the state says it.
Failure no_files(std::string_view id, std::string_view state, std::string_view why);
Failure snapshot_being_made(std::string_view id);
Failure snapshot_in_use(std::string_view id, std::string_view sandbox);
Failure snapshots_unsupported(std::string_view why);
Failure snapshot_failed(const Error& error);
Failure snapshot_without_env(std::string_view id);
Failure snapshot_of_another_image(std::string_view id, std::string_view sandbox);
Failure cannot_be_copied(std::string_view id, std::string_view why);  // a fork, a rollback

// Images of them.
Failure image_name_taken(const Error& error);
Failure image_commit_failed(const Error& error);

// Pools.
Failure pool_not_found(std::string_view name);
Failure pool_not_found_on_create(std::string_view name);
Failure pool_exists(std::string_view name);
Failure pool_exhausted(std::string_view name, std::string_view why);
Failure too_many_pools(size_t most);
Failure pools_unsupported(std::string_view why);

// It may well run: what is missing is the way to it.
Failure unreachable(std::string_view id, const Error& error);

Failure internal_error(const Error& error);  // of the store; says when it is the disk

}  // namespace osb::sandbox
