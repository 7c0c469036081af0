// `osb context`: servers by name, in the user's file of settings.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/client_config.h"
#include "cli/config_command.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

// The file as it is; one that is not there is empty.
Result<std::string> present_text(const ClientSettings& settings) {
  if (settings.config_path.empty())
    return fail(Code::invalid_argument, "HOME is not set; name a file with --config before the command");
  if (!settings.config_file_exists) return std::string();
  return read_file(settings.config_path);
}

Result<const Context*> find_context(const ClientSettings& settings, const std::string& name) {
  auto found = settings.contexts.find(name);
  if (found == settings.contexts.end())
    return fail(Code::not_found, "there is no context of this name; see: osb context ls");
  return &found->second;
}

// A context is used from anywhere.
Result<std::string> absolute(const char* option, const std::string& path) {
  if (path.empty()) return path;
  TRY(in_context(option, read_file(path)));
  std::error_code error;
  std::string whole = std::filesystem::absolute(path, error).lexically_normal().string();
  if (error) return fail_errno(option, error.value());
  return whole;
}

std::string address_of(const Context& context) {
  if (context.domain.find("://") != std::string::npos) return context.domain;
  return context.protocol + "://" + context.domain;
}

struct Add : ConfigCommand {
  std::string name, address, key;
  TlsFiles tls;
  bool use = false;
  void own_options(CLI::App& command) override {
    command.add_option("NAME", name, "what to call it")->required();
    command.add_option("ADDRESS", address, "https://HOST, http://HOST:PORT or HOST:PORT")->required();
    command.add_option("--api-key", key, "its key; - reads it from standard input, where nobody sees it");
    command.add_option("--ca-file", tls.authority, "the authority of its certificate, when it is your own");
    command.add_option("--client-cert", tls.certificate, "the certificate to show, when it asks for one");
    command.add_option("--client-key", tls.key, "the key of that certificate");
    command.add_flag("--use", use, "and use it from now on");
    command.footer(
        "One of the same name is replaced. The key is kept in the file of settings, which only you can "
        "read.");
  }
  Result<void> run(const ClientSettings& settings) override {
    ServerAddress server = TRY(parse_server_address(address));
    if (tls.certificate.empty() != tls.key.empty())
      return fail(Code::invalid_argument, "--client-cert and --client-key go together");
    if (!server.tls && !(tls.authority + tls.certificate).empty())
      return fail(Code::invalid_argument, "certificates are for https:// addresses");
    if (key == "-") key = std::string(trim(TRY(in_context("--api-key", read_all(STDIN_FILENO, 4096)))));
    size_t scheme = address.find("://");
    Context context{.domain = scheme == address.npos ? address : address.substr(scheme + 3),
                    .protocol = server.tls ? "https" : "http",
                    .api_key = key,
                    .tls = {.authority = TRY(absolute("--ca-file", tls.authority)),
                            .certificate = TRY(absolute("--client-cert", tls.certificate)),
                            .key = TRY(absolute("--client-key", tls.key))}};
    std::string text = TRY(put_context(TRY(present_text(settings)), name, context));
    if (use) text = TRY(choose_context(text, name));
    TRY(write_client_config(settings.config_path, text));
    output.ok(
        fmt::format("Context {} is {}{}", name, address_of(context), use ? ", in use from now on" : ""));
    return {};
  }
};

struct List : ConfigCommand {
  Result<void> run(const ClientSettings& settings) override {
    bj::array rows;
    for (const auto& [name, context] : settings.contexts)
      rows.push_back(bj::object{{"name", name},
                                {"address", address_of(context)},
                                {"key", !context.api_key.empty()},
                                {"in_use", settings.context == name}});
    output.rows("Contexts", {"name", "address", "key", "in_use"}, rows, rows);
    return {};
  }
};

struct Use : ConfigCommand {
  std::string name;
  bool none = false;
  void own_options(CLI::App& command) override {
    command.add_option("NAME", name, "as `osb context ls` prints it");
    command.add_flag("--none", none, "none from now on");
  }
  Result<void> run(const ClientSettings& settings) override {
    if (name.empty() != none) return fail(Code::invalid_argument, "name a context, or give --none");
    if (!none) TRY(find_context(settings, name));
    std::string text = TRY(present_text(settings));
    TRY(write_client_config(settings.config_path, TRY(choose_context(text, name))));
    output.ok(none ? "No context is in use" : fmt::format("Context {} is in use", name));
    return {};
  }
};

struct Remove : ConfigCommand {
  std::string name;
  void own_options(CLI::App& command) override {
    command.add_option("NAME", name, "as `osb context ls` prints it")->required();
  }
  Result<void> run(const ClientSettings& settings) override {
    TRY(find_context(settings, name));
    std::string text = TRY(remove_context(TRY(present_text(settings)), name));
    if (settings.chosen_context == name) text = TRY(choose_context(text, ""));
    TRY(write_client_config(settings.config_path, text));
    output.ok(fmt::format("Context {} is gone", name));
    return {};
  }
};

struct ShowContext : ConfigCommand {
  std::string name;
  void own_options(CLI::App& command) override {
    command.add_option("NAME", name, "as `osb context ls` prints it (default: the one in use)");
  }
  Result<void> run(const ClientSettings& settings) override {
    std::string which = name.empty() ? settings.context : name;
    if (which.empty()) return fail(Code::not_found, "no context is in use; see: osb context ls");
    const Context& context = *TRY(find_context(settings, which));
    auto maybe = [](const std::string& text) { return text.empty() ? bj::value() : bj::value(text); };
    output.record("Context", {{"name", which},
                              {"address", address_of(context)},
                              {"api_key", maybe(masked(context.api_key))},
                              {"ca_file", maybe(context.tls.authority)},
                              {"client_cert", maybe(context.tls.certificate)},
                              {"client_key", maybe(context.tls.key)},
                              {"in_use", settings.context == which}});
    return {};
  }
};

}  // namespace

void add_context(CommandTree& tree) {
  CLI::App& context = tree.group("context", "servers by name, with their keys and certificates");
  tree.add<Add>(context, "add", "remember a server: osb context add NAME https://HOST");
  tree.add<List>(context, "ls", "which servers are known");
  tree.add<Use>(context, "use", "ask this one from now on");
  tree.add<ShowContext>(context, "show", "what is known about one");
  tree.add<Remove>(context, "rm", "forget one");
}

}  // namespace osb::cli
