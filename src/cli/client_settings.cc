#include "cli/client_settings.h"

#include <fmt/format.h>

#include "base/fd.h"
#include "cli/client_config.h"

namespace osb::cli {
namespace {

const CLI::App& root_of(const CLI::App& app) {
  const CLI::App* at = &app;
  while (at->get_parent()) at = at->get_parent();
  return *at;
}

// Given on the command line or, for options that have one, in their variable of the environment.
template <class T>
void take(const CLI::App& root, const char* name, T& into) {
  const CLI::Option* option = root.get_option_no_throw(name);
  if (option && option->count() > 0) into = option->as<T>();
}

}  // namespace

void add_client_options(CLI::App& root) {
  auto add = [&](const char* name, const char* help) {
    return root.add_option(name)->description(help)->expected(1)->group(
        "Options of every command that asks a server");
  };
  add("--domain", "HOST:PORT of the server (default: localhost:8080)")->envname("OPEN_SANDBOX_DOMAIN");
  add("--api-key", "the server's key; better in the environment than here")->envname("OPEN_SANDBOX_API_KEY");
  add("--protocol", "http, or https")->check(CLI::IsMember({"http", "https"}));
  add("--request-timeout", "let answers take longer than usual: seconds")->check(CLI::PositiveNumber);
  root.add_flag("--use-server-proxy,!--no-use-server-proxy")
      ->description("accepted: traffic to sandboxes always goes through the server")
      ->group("Options of every command that asks a server");
  add("--config", "file of settings (default: ~/.opensandbox/config.toml)");
  root.add_flag("-v,--verbose")->description("accepted: errors are always told in full");
  root.add_flag("--no-color")->description("accepted: osb prints no colours");
}

Result<ClientSettings> client_settings(const CLI::App& command) {
  const CLI::App& root = root_of(command);
  ClientSettings settings;
  settings.config_path = default_client_config();
  take(root, "--config", settings.config_path);
  if (!settings.config_path.empty()) {
    auto text = read_file(settings.config_path);
    if (!text && text.error().code != Code::not_found)
      return std::unexpected(std::move(text.error()).in("--config"));
    settings.config_file_exists = text.has_value();
    if (text) TRY(read_client_config(*text, settings.config_path, settings));
  }
  take(root, "--domain", settings.domain);
  take(root, "--api-key", settings.api_key);
  take(root, "--protocol", settings.protocol);
  take(root, "--request-timeout", settings.request_timeout);
  take(root, "--use-server-proxy", settings.use_server_proxy);
  return settings;
}

}  // namespace osb::cli
