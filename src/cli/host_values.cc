#include "cli/host_values.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>

namespace osb::cli {
namespace {

std::unexpected<Error> refuse(const server::Config& config, const std::string& key, std::string_view cause,
                              std::string_view remedy) {
  return fail(Code::invalid_argument, fmt::format("{}: {}; {}", config.place(key), cause, remedy));
}

Result<void> check_user(const server::Config& config) {
  // The default needs no account: the server then runs as a number that nobody has.
  const std::string& user = config.native.user;
  if (user == server::NativeSection().user) return {};
  struct passwd* account = ::getpwnam(user.c_str());
  if (!account) {
    return refuse(config, "native.user", fmt::format("this host has no account \"{}\"", user),
                  fmt::format("make it with `useradd --system {}`, or remove user: the server then runs as a "
                              "number that nobody has",
                              user));
  }
  if (account->pw_uid == 0) {
    return refuse(config, "native.user", "the server does not run as root",
                  "name an account without privilege, or remove user");
  }
  return {};
}

}  // namespace

Result<void> check_host_values(const server::Config& config, bool is_root) {
  if (is_root) TRY(check_user(config));
  struct stat info{};
  for (const auto& [name, path] : config.native.images) {
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return refuse(config, "native.images." + name, fmt::format("{} is not a directory", path),
                  "unpack the image's root there, or remove the line; `osb images import` needs none");
  }
  for (const std::string& path : config.registry.ca_files) {
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) continue;
    return refuse(config, "registry.ca_files", path + " is not a file",
                  "put the certificates (PEM) there, or remove it from the list");
  }
  if (const std::string& path = config.registry.auth_file; !path.empty() && ::stat(path.c_str(), &info) < 0) {
    return refuse(config, "registry.auth_file", path + " does not exist",
                  "make it with `docker login`, or remove the line");
  }
  for (const std::string& path : config.storage.allowed_host_paths) {
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return refuse(config, "storage.allowed_host_paths", path + " is not a directory",
                  "make it, or remove it from the list");
  }
  for (const std::string& path : config.native.host_paths) {
    if (::stat(path.c_str(), &info) == 0) continue;
    return refuse(config, "native.host_paths", path + " does not exist",
                  "make it, or remove it from the list");
  }
  return {};
}

}  // namespace osb::cli
