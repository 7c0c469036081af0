// `osb config`: the user's file of settings.

#include <fmt/format.h>

#include "base/fd.h"
#include "cli/client_config.h"
#include "cli/config_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

struct Init : ConfigCommand {
  bool force = false;
  void own_options(CLI::App& command) override {
    command.add_flag("--force", force, "also over one that is there");
  }
  Result<void> run(const ClientSettings& settings) override {
    const std::string& path = settings.config_path;
    if (path.empty())
      return fail(Code::invalid_argument, "HOME is not set; name a file with --config before the command");
    if (settings.config_file_exists && !force) {
      output.warn(fmt::format("Config file already exists at {}. Use --force to overwrite.", path));
      return {};
    }
    TRY(write_client_config(path, kInitialClientConfig));
    output.ok("Config file created: " + path);
    return {};
  }
};

struct Show : ConfigCommand {
  Result<void> run(const ClientSettings& settings) override {
    auto maybe = [](const std::optional<std::string>& text) { return text ? bj::value(*text) : bj::value(); };
    output.record("Resolved Configuration",
                  {{"api_key", settings.api_key.empty() ? bj::value() : bj::value(masked(settings.api_key))},
                   {"domain", settings.domain},
                   {"protocol", settings.protocol},
                   {"request_timeout", settings.request_timeout},
                   {"use_server_proxy", settings.use_server_proxy},
                   {"color", settings.color},
                   {"default_image", maybe(settings.default_image)},
                   {"default_timeout", maybe(settings.default_timeout)},
                   {"config_path", settings.config_path},
                   {"config_file_exists", settings.config_file_exists}});
    return {};
  }
};

struct Set : ConfigCommand {
  std::string key, value;
  void own_options(CLI::App& command) override {
    command.add_option("KEY", key, "section.field, as in connection.domain")->required();
    command.add_option("VALUE", value, "what it shall be")->required();
  }
  Result<void> run(const ClientSettings& settings) override {
    if (settings.config_path.empty())
      return fail(Code::invalid_argument, "HOME is not set; name a file with --config before the command");
    if (!settings.config_file_exists)
      return fail(Code::not_found, "there is no file of settings yet; make one with: osb config init");
    std::string text = TRY(read_file(settings.config_path));
    TRY(write_client_config(settings.config_path, TRY(set_in_client_config(text, key, value))));
    output.ok(fmt::format("Set {} = {}", key, value));
    return {};
  }
};

}  // namespace

void add_config(CommandTree& tree) {
  CLI::App& config = tree.group("config", "your own settings: server, key, defaults");
  tree.add<Init>(config, "init", "make a file of settings");
  tree.add<Show>(config, "show", "what holds now, wherever it comes from");
  tree.add<Set>(config, "set", "change one: osb config set connection.domain HOST:PORT");
}

}  // namespace osb::cli
