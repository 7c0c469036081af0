#include "sandbox/failures.h"

#include <fmt/format.h>

#include <optional>

#include "base/shown.h"

namespace osb::sandbox {
namespace {

using Kind = Failure::Kind;

// A disk of the service that does not take what has to be stored is none of the request's faults, and the
// answer says so.
struct DiskTrouble {
  std::string_view cause, remedy;
};

std::optional<DiskTrouble> disk_trouble(const Error& error) {
  if (error.sys_errno == ENOSPC || error.sys_errno == EDQUOT) {
    return DiskTrouble{"the disk of the service is full",
                       "delete sandboxes, or make room on the file system of the service's state directory"};
  }
  if (error.sys_errno == EROFS || error.sys_errno == EIO) {
    return DiskTrouble{"the disk of the service cannot be written",
                       "repair the file system of the service's state directory; GET /health says when it is "
                       "well again"};
  }
  return std::nullopt;
}

}  // namespace

Failure invalid_label(std::string_view key, std::string why) {
  return {.kind = Kind::invalid,
          .code = "SANDBOX::INVALID_METADATA_LABEL",
          .message = fmt::format("metadata '{}': {}", shown(key), why)};
}

Failure not_found(std::string_view id) {
  return {.kind = Kind::not_found,
          .code = "SANDBOX::NOT_FOUND",
          .message = fmt::format("There is no sandbox {}; it was deleted, has expired, or never existed.",
                                 shown(id))};
}

Failure image_not_found(const Error& error) {
  return {.kind = Kind::invalid, .code = "IMAGE::NOT_FOUND", .message = error.message};
}

Failure image_unreachable(const Error& error) {
  return {.kind = Kind::failed,
          .code = "IMAGE::UNREACHABLE",
          .message = fmt::format("The registry of the image cannot be reached: {}", error.message),
          .cause = error.message,
          .remedy =
              "try again, or bring the image here by file: osb images import (docker load, where "
              "sandboxes are containers)"};
}

Failure image_refused(const Error& error) {
  return {.kind = Kind::invalid,
          .code = "IMAGE::UNAUTHORIZED",
          .message = fmt::format("The registry refuses the image: {}", error.message),
          .cause = error.message,
          .remedy = "check the name, and the username and password in image.auth"};
}

Failure image_invalid(const Error& error) {
  if (error.code == Code::exhausted) {
    return {
        .kind = Kind::failed,
        .code = "IMAGE::NO_ROOM",
        .message = fmt::format("There is no room for the image: {}", error.message),
        .cause = error.message,
        .remedy =
            "osb images prune; delete sandboxes, or make room on the file system of the service's state "
            "directory; raise registry.disk_budget_gb where that is what is short; on the disk of a Docker "
            "engine: docker system prune"};
  }
  return {.kind = Kind::failed,
          .code = "IMAGE::INVALID",
          .message = fmt::format("The image from the registry cannot be used: {}", error.message),
          .cause = error.message,
          .remedy = "push it again, or ask for another tag or digest"};
}

Failure invalid_entrypoint(const Error& error) {
  return {.kind = Kind::invalid, .code = "SANDBOX::INVALID_ENTRYPOINT", .message = error.message};
}

Failure entry_ended(const Error& error) {
  return {.kind = Kind::invalid,
          .code = "SANDBOX::ENTRYPOINT_EXITED",
          .message = fmt::format("The sandbox ended as soon as it was started: {}", error.message)};
}

Failure bad_limit(const Error& error) {
  return {.kind = Kind::invalid, .code = "SANDBOX::INVALID_PARAMETER", .message = error.message};
}

Failure unsupported_by_runtime(const Error& error) {
  return {.kind = Kind::unsupported,
          .code = "SANDBOX::UNSUPPORTED",
          .message = error.message,
          .remedy = "leave it out of the request, or ask for another runtime"};
}

Failure unknown_runtime(std::string_view known) {
  return {
      .kind = Kind::invalid,
      .code = "SANDBOX::INVALID_PARAMETER",
      .message = fmt::format(
          "extensions.opensandbox.extensions.runtime: this server has no such runtime; it has: {}", known),
      .remedy = "name one of these, or leave it out"};
}

Failure runtime_away(const Error& error) {
  return {.kind = Kind::unavailable,
          .code = "SANDBOX::OVERLOADED",
          .message = fmt::format("The sandbox could not be started: {}", error.message),
          .cause = error.message,
          .remedy = "try again; GET /health says which runtime is away"};
}

Failure start_failed(const Error& error) {
  return {.kind = Kind::failed,
          .code = "SANDBOX::START_FAILED",
          .message = fmt::format("The sandbox could not be started: {}", error.message),
          .cause = error.message};
}

Failure start_failed_on_disk(const Error& error) {
  auto trouble = disk_trouble(error);
  if (!trouble) return start_failed(error);
  return {.kind = Kind::failed,
          .code = "SANDBOX::START_FAILED",
          .message = fmt::format("The sandbox could not be started: {}.", trouble->cause),
          .cause = fmt::format("{}: {}", trouble->cause, error.message),
          .remedy = std::string(trouble->remedy)};
}

Failure pool_not_found(std::string_view name) {
  return {.kind = Kind::not_found,
          .code = "POOL::NOT_FOUND",
          .message = fmt::format("There is no pool {}; it was deleted, or never existed.", shown(name)),
          .remedy = "GET /pools lists those there are"};
}

Failure pool_not_found_on_create(std::string_view name) {
  Failure failure = pool_not_found(name);
  failure.kind = Kind::invalid;
  return failure;
}

Failure pool_exists(std::string_view name) {
  return {.kind = Kind::wrong_state,
          .code = "POOL::ALREADY_EXISTS",
          .message = fmt::format("There is a pool {} already.", shown(name)),
          .remedy = "choose another name, or delete that one first; PUT changes its capacity"};
}

Failure pool_exhausted(std::string_view name, std::string_view why) {
  return {.kind = Kind::too_many,
          .code = "POOL::EXHAUSTED",
          .message = fmt::format("No sandbox of pool {} is free: {}.", shown(name), why),
          .remedy = "try again after the time in Retry-After, delete claimed sandboxes, or raise poolMax"};
}

Failure too_many_pools(size_t most) {
  return {.kind = Kind::invalid,
          .code = "SANDBOX::INVALID_PARAMETER",
          .message = fmt::format("name: there are {} pools already, which is the most; delete one", most)};
}

Failure pools_unsupported(std::string_view why) {
  return {.kind = Kind::unsupported,
          .code = "SANDBOX::UNSUPPORTED",
          .message = fmt::format("Pools are not offered by this runtime: {}.", why)};
}

Failure unreachable(std::string_view id, const Error& error) {
  return {.kind = Kind::unavailable,
          .code = "SANDBOX::OVERLOADED",
          .message = fmt::format("Sandbox {} cannot be reached now: {}", shown(id), error.message),
          .cause = error.message,
          .remedy = "try again; if it stays so, restart the service or delete the sandbox"};
}

Failure too_many_creates(std::string why) {
  return {.kind = Kind::too_many,
          .code = "SANDBOX::TOO_MANY_REQUESTS",
          .message = std::move(why),
          .remedy = "try again after the time in Retry-After"};
}

Failure expiration_in_the_past() {
  return {.kind = Kind::invalid,
          .code = "SANDBOX::INVALID_EXPIRATION",
          .message = "expiresAt must be in the future."};
}

Failure expiration_too_late(WallTime latest) {
  return {.kind = Kind::invalid,
          .code = "SANDBOX::INVALID_EXPIRATION",
          .message = fmt::format("expiresAt must not be after {}: no sandbox of this server lives longer.",
                                 format_time(latest, 0)),
          .remedy = "renew until then at most, and go on in a new sandbox"};
}

Failure no_expiration(std::string_view id) {
  return {.kind = Kind::wrong_state,
          .code = "SANDBOX::INVALID_EXPIRATION",
          .message = fmt::format("Sandbox {} was created without a timeout and never expires.", shown(id)),
          .remedy = "delete it when it is no longer needed"};
}

Failure not_running(std::string_view id, std::string_view state, std::string_view message) {
  return {.kind = Kind::wrong_state,
          .code = "SANDBOX::NOT_RUNNING",
          .message = fmt::format("Sandbox {} is {}, not Running: {}", shown(id), state, message)};
}

Failure not_paused(std::string_view id, std::string_view state) {
  return {
      .kind = Kind::wrong_state,
      .code = "SANDBOX::NOT_PAUSED",
      .message = fmt::format("Sandbox {} is {}; only a Paused sandbox can be resumed.", shown(id), state)};
}

Failure paused(std::string_view id, std::string_view state) {
  return {.kind = Kind::wrong_state,
          .code = "SANDBOX::PAUSED",
          .message =
              fmt::format("Sandbox {} is {}: nothing in it runs, so nothing can answer.", shown(id), state),
          .remedy = fmt::format("resume it first: POST /v1/sandboxes/{}/resume", shown(id))};
}

Failure pause_unsupported(const Error& error) {
  return {.kind = Kind::unsupported,
          .code = "SANDBOX::UNSUPPORTED",
          .message = fmt::format("This server cannot pause a sandbox: {}", error.message),
          .cause = error.message,
          .remedy = "run the service as root, or in a cgroup that is delegated to its user"};
}

Failure pause_failed(const Error& error) {
  return {.kind = Kind::failed,
          .code = "SANDBOX::PAUSE_FAILED",
          .message = fmt::format("The sandbox could not be paused and goes on: {}", error.message),
          .cause = error.message,
          .remedy = "try again; a process in an uninterruptible wait of the kernel cannot be stopped"};
}

Failure resume_failed(const Error& error) {
  return {.kind = Kind::failed,
          .code = "SANDBOX::RESUME_FAILED",
          .message = fmt::format("The sandbox could not be resumed and stays paused: {}", error.message),
          .cause = error.message,
          .remedy = "try again, or delete the sandbox"};
}

Failure delete_failed(const Error& error) {
  if (error.code == Code::unavailable) {
    return {.kind = Kind::unavailable,
            .code = "SANDBOX::OVERLOADED",
            .message = fmt::format("The sandbox cannot be removed now: {}", error.message),
            .cause = error.message,
            .remedy = "nothing has to be done: it is removed as soon as that is possible"};
  }
  return {.kind = Kind::failed,
          .code = "SANDBOX::DELETE_FAILED",
          .message = fmt::format("The sandbox could not be removed: {}", error.message),
          .cause = error.message,
          .remedy = "try again; deleting is safe to repeat"};
}

Failure internal_error(const Error& error) {
  if (auto trouble = disk_trouble(error)) {
    return {.kind = Kind::failed,
            .code = "SANDBOX::INTERNAL_ERROR",
            .message = fmt::format("The server could not do this: {}.", trouble->cause),
            .cause = std::string(trouble->cause),
            .remedy = std::string(trouble->remedy)};
  }
  return {.kind = Kind::failed,
          .code = "SANDBOX::INTERNAL_ERROR",
          .message = "The server failed to do this; its log has the request id.",
          .cause = std::string(to_string(error.code))};
}

Failure snapshot_not_found(std::string_view id) {
  return {.kind = Kind::not_found,
          .code = "SNAPSHOT::NOT_FOUND",
          .message = fmt::format("There is no snapshot {}; it was deleted, or never existed.", shown(id))};
}

Failure snapshot_not_ready(std::string_view id, std::string_view state, std::string_view message) {
  return {.kind = Kind::wrong_state,
          .code = "SNAPSHOT::NOT_READY",
          .message = fmt::format("Snapshot {} is {}, not Ready: {}", shown(id), state, message),
          .remedy = "wait until GET /snapshots/{id} says Ready, or make another one"};
}

Failure snapshot_of_wrong_state(std::string_view id, std::string_view state) {
  return {
      .kind = Kind::wrong_state,
      .code = "SNAPSHOT::INVALID_SOURCE_STATE",
      .message = fmt::format("Sandbox {} is {}; snapshots are made of sandboxes that are Running or Paused.",
                             shown(id), state)};
}

Failure no_files(std::string_view id, std::string_view state, std::string_view why) {
  return {.kind = Kind::wrong_state,
          .code = "SNAPSHOT::INVALID_SOURCE_STATE",
          .message = fmt::format("Sandbox {} is {}; it has no files that can be compared{}{}.", shown(id),
                                 state, why.empty() ? "" : ": ", why)};
}

Failure snapshot_being_made(std::string_view id) {
  return {
      .kind = Kind::wrong_state,
      .code = "SNAPSHOT::INVALID_STATE",
      .message = fmt::format("Snapshot {} is being made; delete it when it is Ready or Failed.", shown(id))};
}

Failure snapshot_in_use(std::string_view id, std::string_view sandbox) {
  return {.kind = Kind::wrong_state,
          .code = "SNAPSHOT::DELETE_CONFLICT",
          .message = fmt::format("Snapshot {} is in use by sandbox {}; delete that first.", shown(id),
                                 shown(sandbox))};
}

Failure snapshots_unsupported(std::string_view why) {
  return {.kind = Kind::unsupported,
          .code = "SNAPSHOT::NOT_IMPLEMENTED",
          .message = fmt::format("Snapshots are not offered by this server: {}.", why)};
}

Failure snapshot_failed(const Error& error) {
  // An error of the launcher without a number of its own comes as EIO.
  auto trouble = error.sys_errno == EIO ? std::nullopt : disk_trouble(error);
  return {.kind = Kind::failed,
          .code = "SNAPSHOT::RUNTIME_CREATE_FAILED",
          .message = fmt::format("The snapshot could not be made: {}",
                                 trouble ? trouble->cause : std::string_view(error.message)),
          .cause = error.message,
          .remedy = trouble ? std::string(trouble->remedy) : ""};
}

Failure snapshot_without_env(std::string_view id) {
  return {
      .kind = Kind::invalid,
      .code = "SANDBOX::INVALID_PARAMETER",
      .message = fmt::format("extensions.restore.env: of snapshot {} no environment was recorded; leave it "
                             "out, and give the variables in env",
                             shown(id))};
}

Failure snapshot_of_another_image(std::string_view id, std::string_view sandbox) {
  return {
      .kind = Kind::wrong_state,
      .code = "SNAPSHOT::INVALID_RESTORE_CONFIG",
      .message = fmt::format("Snapshot {} was made over another image than sandbox {}; create a sandbox from "
                             "it instead.",
                             shown(id), shown(sandbox))};
}

Failure image_name_taken(const Error& error) {
  return {.kind = Kind::wrong_state,
          .code = "IMAGE::NAME_TAKEN",
          .message = fmt::format("The image cannot have this name: {}.", error.message),
          .remedy = "choose another name"};
}

Failure image_commit_failed(const Error& error) {
  if (error.code == Code::already_exists) return image_name_taken(error);
  if (error.code == Code::unsupported) return snapshots_unsupported(error.message);
  if (error.code == Code::not_found)
    return {.kind = Kind::not_found, .code = "IMAGE::NOT_FOUND", .message = error.message};
  if (error.code == Code::invalid_argument)
    return {.kind = Kind::invalid,
            .code = "SANDBOX::INVALID_PARAMETER",
            .message = fmt::format("The image cannot be made: {}", error.message)};
  return internal_error(error);
}

Failure cannot_be_copied(std::string_view id, std::string_view why) {
  return {.kind = Kind::unsupported,
          .code = "SANDBOX::UNSUPPORTED",
          .message = fmt::format("Sandbox {} cannot be made again as it is: {}.", shown(id), why)};
}

}  // namespace osb::sandbox
