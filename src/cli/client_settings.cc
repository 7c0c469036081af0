#include "cli/client_settings.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/client_config.h"

namespace osb::cli {
namespace {

const CLI::App& root_of(const CLI::App& app) {
  const CLI::App* at = &app;
  while (at->get_parent()) at = at->get_parent();
  return *at;
}

std::string in_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// Given on the command line or, for options that have one, in their variable of the environment.
template <class T>
void take(const CLI::App& root, const char* name, T& into) {
  const CLI::Option* option = root.get_option_no_throw(name);
  if (option && option->count() > 0) into = option->as<T>();
}

// On the command line itself. One that says the same as the variable counts as the variable.
std::string flag(const CLI::App& root, const char* name, const char* variable) {
  std::string given;
  take(root, name, given);
  return given == in_environment(variable) ? "" : given;
}

// Which context is meant, "" for none.
Result<std::string> wanted_context(const CLI::App& root, Addressed addressed, const ClientSettings& file) {
  bool named = addressed == Addressed::yes || !flag(root, "--domain", "OPEN_SANDBOX_DOMAIN").empty();
  std::string context = flag(root, "--context", "OPEN_SANDBOX_CONTEXT");
  if (named && !context.empty())
    return fail(Code::invalid_argument, "--context names a server already; leave out --server and --domain");
  if (named || !context.empty()) return context;
  if (!in_environment("OPEN_SANDBOX_DOMAIN").empty()) return "";
  context = in_environment("OPEN_SANDBOX_CONTEXT");
  return context.empty() ? file.chosen_context : context;
}

// The key of the file is for another server; that of the environment serves when the context has none.
Result<void> use_context(const std::string& name, ClientSettings& settings) {
  auto found = settings.contexts.find(name);
  if (found == settings.contexts.end())
    return fail(Code::not_found, "there is no context of this name; see: osb context ls");
  const Context& context = found->second;
  settings.context = name;
  settings.domain = context.domain;
  settings.protocol = context.protocol;
  settings.api_key = context.api_key.empty() ? in_environment("OPEN_SANDBOX_API_KEY") : context.api_key;
  settings.tls = context.tls;
  settings.is_named = true;
  return {};
}

}  // namespace

void add_client_options(CLI::App& root) {
  auto add = [&](const char* name, const char* help) {
    return root.add_option(name)->description(help)->expected(1)->group(
        "Options of every command that asks a server");
  };
  add("--domain", "HOST:PORT of the server, or https://HOST (default: localhost:8080)")
      ->envname("OPEN_SANDBOX_DOMAIN");
  add("--context", "a server by its name; see osb context")->envname("OPEN_SANDBOX_CONTEXT");
  add("--api-key", "the server's key; better in the environment than here")->envname("OPEN_SANDBOX_API_KEY");
  add("--protocol", "http, or https")->check(CLI::IsMember({"http", "https"}));
  add("--ca-file", "file of the authority that made the server's certificate, besides the system's");
  add("--client-cert", "file of the certificate to show to a server that asks for one");
  add("--client-key", "file of its key");
  add("--request-timeout", "let answers take longer than usual: seconds")->check(CLI::PositiveNumber);
  root.add_flag("--use-server-proxy,!--no-use-server-proxy")
      ->description("accepted: traffic to sandboxes always goes through the server")
      ->group("Options of every command that asks a server");
  add("--config", "file of settings (default: ~/.opensandbox/config.toml)");
  root.add_flag("-v,--verbose")->description("accepted: errors are always told in full");
  root.add_flag("--no-color")->description("accepted: osb prints no colours");
}

Result<ClientSettings> client_settings(const CLI::App& command, Addressed addressed) {
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
  std::string context = TRY(wanted_context(root, addressed, settings));
  if (context.empty()) {
    take(root, "--domain", settings.domain);
    take(root, "--api-key", settings.api_key);
    const CLI::Option* domain = root.get_option_no_throw("--domain");
    if (domain && domain->count() > 0) settings.is_named = true;
  } else {
    TRY(use_context(context, settings));
    std::string key = flag(root, "--api-key", "OPEN_SANDBOX_API_KEY");
    if (!key.empty()) settings.api_key = key;
  }
  take(root, "--protocol", settings.protocol);
  take(root, "--ca-file", settings.tls.authority);
  take(root, "--client-cert", settings.tls.certificate);
  take(root, "--client-key", settings.tls.key);
  take(root, "--request-timeout", settings.request_timeout);
  take(root, "--use-server-proxy", settings.use_server_proxy);
  if (std::string start = in_environment("OPEN_SANDBOX_START_SERVER"); !start.empty())
    settings.start_server = start != "0" && !iequals(start, "false") && !iequals(start, "no");
  return settings;
}

Result<Connection> connection_for(const CLI::App& command, const std::string& server,
                                  const std::string& key) {
  ClientSettings settings = TRY(client_settings(command, server.empty() ? Addressed::no : Addressed::yes));
  std::string where = server.empty() ? settings.domain : server;
  if (settings.protocol == "https" && where.find("://") == where.npos) where = "https://" + where;
  Connection to;
  to.server = TRY(parse_server_address(where));
  to.api_key = key.empty() ? settings.api_key : key;
  to.patience = std::chrono::seconds(settings.request_timeout);
  to.tls = settings.tls;
  if (server.empty() && !settings.is_named)
    to.occasion = settings.start_server ? Occasion::start : Occasion::running;
  return to;
}

}  // namespace osb::cli
