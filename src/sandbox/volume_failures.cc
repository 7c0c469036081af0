#include "sandbox/volume_failures.h"

#include <fmt/format.h>

#include "base/shown.h"

namespace osb::sandbox {
namespace {

using Kind = Failure::Kind;

Failure about(std::string_view field, std::string_view code, std::string_view why) {
  return {.kind = Kind::invalid, .code = std::string(code), .message = fmt::format("{}: {}", field, why)};
}

constexpr std::string_view kSubPath = "VOLUME::INVALID_SUB_PATH", kHostPath = "VOLUME::HOST_PATH_NOT_ALLOWED";

}  // namespace

Failure duplicate_volume(std::string_view field) {
  return about(field, "VOLUME::DUPLICATE_NAME", "another volume of the request has this name");
}

Failure invalid_mount_path(std::string_view field, std::string_view why) {
  return about(field, "VOLUME::INVALID_MOUNT_PATH", why);
}

Failure invalid_sub_path(std::string_view field, std::string_view why) { return about(field, kSubPath, why); }

Failure invalid_host_path(std::string_view field, std::string_view why) {
  return about(field, "VOLUME::INVALID_HOST_PATH", why);
}

Failure host_path_not_allowed(std::string_view field, std::string_view why) {
  return about(field, kHostPath, why);
}

Failure host_path_refused(const Error& error) {
  return {.kind = Kind::invalid, .code = std::string(kHostPath), .message = error.message};
}

Failure sub_path_refused(const Error& error) {
  return {.kind = Kind::invalid, .code = std::string(kSubPath), .message = error.message};
}

Failure sub_path_driver(const Error& error) {
  return {.kind = Kind::invalid,
          .code = "VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER",
          .message = error.message,
          .remedy = "mount the whole volume, or use one of the driver local"};
}

Failure host_path_failed(const Error& error) {
  return {.kind = Kind::failed,
          .code = "VOLUME::HOST_PATH_CREATE_FAILED",
          .message = fmt::format("The directory cannot be used: {}", error.message),
          .cause = error.message,
          .remedy = "make the directory on the server's host, or choose another one"};
}

Failure volume_missing(const Error& error) {
  return {.kind = Kind::invalid,
          .code = "VOLUME::PVC_NOT_FOUND",
          .message = error.message,
          .remedy = "set pvc.createIfNotExists to true, or leave it out; GET /volumes lists those there are"};
}

Failure volume_failed(const Error& error) {
  return {.kind = Kind::failed,
          .code = "VOLUME::PVC_INSPECT_FAILED",
          .message = fmt::format("The volume cannot be used: {}", error.message),
          .cause = error.message,
          .remedy = "see the log of the service; its disk may be full"};
}

Failure volume_not_found(std::string_view name) {
  return {.kind = Kind::not_found,
          .code = "VOLUME::NOT_FOUND",
          .message = fmt::format("There is no volume {}.", shown(name))};
}

Failure volume_in_use(std::string_view name, std::string_view why) {
  return {.kind = Kind::wrong_state,
          .code = "VOLUME::IN_USE",
          .message = fmt::format("Volume {} is in use: {}.", shown(name), why),
          .remedy = "delete the sandboxes that were made with it first"};
}

}  // namespace osb::sandbox
