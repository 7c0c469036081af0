#include "cli/init_config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/ids.h"
#include "cli/api_error.h"
#include "server/config.h"
#include "server/config_examples.h"

namespace osb::cli {
namespace {

constexpr mode_t kMode = 0600;  // it may come to hold the key

}  // namespace

Result<void> write_config_file(const std::string& path, std::string_view text, bool force) {
  std::error_code error;
  auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty() && !std::filesystem::create_directories(parent, error) && error) {
    return fail_errno("make " + parent.string(), error.value());
  }
  if (!force) return write_file(path, text, O_CREAT | O_EXCL, kMode);
  std::string fresh = path + "." + new_hex_id();
  auto written = write_file(fresh, text, O_CREAT | O_EXCL, kMode);
  if (written && ::rename(fresh.c_str(), path.c_str()) == 0) return {};
  if (written) written = fail_errno("replace " + path);
  ::unlink(fresh.c_str());
  return written;
}

int write_initial_config(const InitConfigOptions& options) {
  auto flag = std::optional(options.path.empty() ? std::string("~/.sandbox.toml") : options.path);
  std::string path = server::config_path(flag, ::getenv);
  auto text = server::config_example(options.example);
  if (!text) {
    print_error("opensandbox-server", text.error());
    return 1;
  }
  auto written = write_config_file(path, *text, options.force);
  if (!written && written.error().code == Code::already_exists) {
    fmt::print("{} exists already; --force overwrites it\n", path);
    return 1;
  }
  if (!written) {
    print_error("opensandbox-server", written.error());
    return 1;
  }
  fmt::print("{}\n", path);
  return 0;
}

}  // namespace osb::cli
