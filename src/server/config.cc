#include "server/config.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/resource_limits.h"
#include "base/fd.h"
#include "base/limit_bounds.h"
#include "base/strings.h"
#include "image/pull_reference.h"
#include "image/reference.h"
#include "sandbox/egress_target.h"
#include "sandbox/webhook.h"
#include "server/config_docker.h"
#include "server/config_keys.h"
#include "server/config_reader.h"
#include "server/config_runtime.h"
#include "server/config_sandbox.h"

namespace osb::server {
namespace {

constexpr int64_t kNoMaximum = std::numeric_limits<int64_t>::max();

std::string without_scheme(std::string_view eip) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (eip.starts_with(scheme)) eip.remove_prefix(scheme.size());
  }
  while (eip.ends_with('/')) eip.remove_suffix(1);
  return std::string(eip);
}

void read_trusted(Section& in, std::vector<sandbox::IpPrefix>& out) {
  std::vector<std::string> ranges;
  in.texts("trusted_proxies", ranges);
  for (const std::string& range : ranges) {
    auto target = sandbox::parse_target(range);
    if (target && target->kind == sandbox::EgressTarget::Kind::prefix) {
      out.push_back(target->prefix);
    } else {
      in.wrong("trusted_proxies", "must have addresses and ranges of addresses",
               "write trusted_proxies = [\"10.0.0.7\", \"10.1.0.0/16\"]");
    }
  }
}

void read_server(Section in, ServerSection& out) {
  in.text("host", out.host);
  if (trim(out.host).empty()) in.wrong("host", "must not be empty", "write host = \"127.0.0.1\"");
  in.number("port", 1, 65535, [&](int64_t v) { out.port = static_cast<uint16_t>(v); });
  in.text("api_key", out.api_key);
  in.text("eip", out.eip);
  out.eip = without_scheme(trim(out.eip));
  in.number("max_sandbox_timeout_seconds", 60, kNoMaximum,
            [&](int64_t v) { out.max_sandbox_timeout_seconds = v; });
  in.number("timeout_keep_alive", 1, 86400, [&](int64_t v) { out.timeout_keep_alive = v; });
  in.number("timeout_graceful_shutdown", 1, 3600, [&](int64_t v) { out.timeout_graceful_shutdown = v; });
  in.number("limit_concurrency", 0, kNoMaximum, [&](int64_t v) { out.limit_concurrency = v; });
  in.number("backlog", 1, 1 << 20, [&](int64_t v) { out.backlog = v; });
  in.number("max_connections", 64, 1 << 20, [&](int64_t v) { out.max_connections = v; });
  in.texts("cors_origins", out.cors_origins);
  read_trusted(in, out.trusted_proxies);
}

void require_absolute(Section& in, std::string_view key, std::string_view path) {
  if (!path.starts_with('/')) in.wrong(key, "must be an absolute path", "start it with '/'");
}

void read_native(Section in, NativeSection& out) {
  in.text("state_dir", out.state_dir);
  out.state_dir_given = in.has("state_dir");
  require_absolute(in, "state_dir", out.state_dir);
  in.text("user", out.user);
  if (out.user.empty()) in.wrong("user", "must not be empty", "name the account that the server runs as");
  in.number("pids_limit", 16, 1 << 22, [&](int64_t v) { out.pids_limit = v; });
  in.texts("host_paths", out.host_paths);
  for (const std::string& path : out.host_paths) require_absolute(in, "host_paths", path);
  in.text_map("images", out.images);
  for (const auto& [name, path] : out.images) require_absolute(in, "images." + shown_name(name), path);
  in.text_map("image_aliases", out.image_aliases);
  for (const auto& [name, target] : out.image_aliases) {
    if (target.empty() || target.find('*') != target.npos) {
      in.wrong("image_aliases." + shown_name(name), "must name one image", "write the name of a local image");
    }
  }
}

// As requests write them: what is compared has one form.
void read_storage(Section in, StorageSection& out) {
  in.texts("allowed_host_paths", out.allowed_host_paths);
  for (std::string& path : out.allowed_host_paths) {
    require_absolute(in, "allowed_host_paths", path);
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    bool is_clean =
        path.size() > 1 && std::ranges::none_of(split(path.substr(1), '/'), [](std::string_view part) {
          return part.empty() || part == "." || part == "..";
        });
    if (!is_clean)
      in.wrong("allowed_host_paths", "must have directories other than /, without '.' or '..'",
               "write allowed_host_paths = [\"/srv/shared\"]");
  }
}

void read_registry(Section in, RegistrySection& out) {
  constexpr std::array<std::string_view, 3> kPolicies = {"if-not-present", "always", "never"};
  in.text("default", out.standard);
  if (!image::is_registry_host(out.standard))
    in.wrong("default", "must be the name of a registry", "write default = \"docker.io\", or remove it");
  in.text("pull_policy", out.pull_policy);
  if (std::ranges::find(kPolicies, out.pull_policy) == kPolicies.end()) {
    in.wrong("pull_policy", "must be if-not-present, always or never",
             "write pull_policy = \"if-not-present\", or remove it");
  }
  in.texts("plain_hosts", out.plain_hosts);
  for (const std::string& host : out.plain_hosts) {
    if (!image::is_registry_host(host))
      in.wrong("plain_hosts", "must have names of hosts, with a port or without", "write \"host:5000\"");
  }
  in.texts("ca_files", out.ca_files);
  for (const std::string& file : out.ca_files) require_absolute(in, "ca_files", file);
  in.text("auth_file", out.auth_file);
  if (!out.auth_file.empty()) require_absolute(in, "auth_file", out.auth_file);
  in.number("disk_budget_gb", 0, 1'000'000, [&](int64_t v) { out.disk_budget_gb = v; });
  in.text_map("mirrors", out.mirrors);
  for (const auto& [registry, url] : out.mirrors) {
    std::string_view rest = url;
    for (std::string_view scheme : {"https://", "http://"}) {
      if (rest.starts_with(scheme)) rest.remove_prefix(scheme.size());
    }
    if (rest.size() == url.size() || !image::is_registry_host(rest)) {
      in.wrong("mirrors." + shown_name(registry), "must be the address of a registry without a path",
               "write \"https://mirror.example\" or \"http://mirror.example:5000\"");
    }
  }
}

void read_egress(Section in, EgressSection& out) {
  in.boolean("enabled", out.enabled);
  in.text("image", out.image);
  out.image = trim(out.image);
  in.texts("name_servers", out.name_servers);
  in.texts("deny_always", out.deny_always);
  in.texts("allow_always", out.allow_always);
  for (const std::string& server : out.name_servers) {
    size_t end = server.starts_with('[') ? server.find(']') : server.npos;
    std::string host = end != server.npos ? server.substr(1, end - 1) : server;
    if (end == server.npos && std::ranges::count(host, ':') == 1) host.resize(host.find(':'));
    if (!sandbox::parse_ip(host))
      in.wrong("name_servers", "must be addresses, not names",
               "write name_servers = [\"1.1.1.1\", \"[2001:db8::1]:53\"]");
  }
  for (const auto& [key, targets] :
       {std::pair("deny_always", &out.deny_always), std::pair("allow_always", &out.allow_always)}) {
    for (const std::string& target : *targets) {
      if (auto parsed = sandbox::parse_target(target); !parsed)
        in.wrong(key, "has something that is no target",
                 "write host names, *.names, addresses or ranges like 10.0.0.0/8");
    }
  }
}

void read_deny_webhook(Section in, EgressSection& out) {
  in.text("deny_webhook", out.deny_webhook);
  if (out.deny_webhook.empty() || sandbox::parse_webhook(out.deny_webhook)) return;
  in.wrong("deny_webhook", "must be an http:// or https:// address",
           "write deny_webhook = \"http://hooks.example:8080/denied\"");
}

void read_proxy(Section in, ProxySection& out) {
  in.boolean("open", out.open);
  in.number("max_in_flight_per_sandbox", 0, kNoMaximum,
            [&](int64_t v) { out.max_in_flight_per_sandbox = v; });
  in.text("preview_domain", out.preview_domain);
  constexpr size_t kLongest = 190;  // leaves room for a label of 63 in a name of 253
  const std::string& domain = out.preview_domain;
  bool plain = domain.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == domain.npos;
  if (!plain || domain.size() > kLongest || domain.starts_with('.') || domain.ends_with('.'))
    in.wrong("preview_domain", "is not a domain in lower case",
             "write one like preview.example, whose subdomains all lead here, or \"\" for no previews");
}

std::string expand_home(std::string path, const Environment& environment) {
  const char* home = environment("HOME");
  if (path.starts_with("~/") && home != nullptr) return std::string(home) + path.substr(1);
  return path;
}

void read_log(Section in, std::string& level) {
  // Those of other OpenSandbox servers included; see log::level_from().
  constexpr std::array<std::string_view, 8> kLevels = {"DEBUG", "INFO",  "WARNING",  "ERROR",
                                                       "WARN",  "TRACE", "CRITICAL", "FATAL"};
  in.text("level", level);
  if (std::ranges::none_of(kLevels, [&](std::string_view known) { return iequals(known, level); })) {
    in.wrong("level", "must be DEBUG, INFO, WARNING or ERROR", "write level = \"INFO\", or remove it");
  }
}

void read_log_file(Section in, LogFileSection& out, const Environment& environment) {
  in.boolean("file_enabled", out.enabled);
  in.text("file_path", out.path);
  out.path = expand_home(std::move(out.path), environment);
  if (out.enabled && !out.path.starts_with('/')) {
    in.wrong("file_path", "must be an absolute path, or begin with ~/ where HOME is set",
             "write file_path = \"/var/log/opensandbox/server.log\"");
  }
  in.number("file_max_bytes", 1, kNoMaximum, [&](int64_t v) { out.max_bytes = v; });
  in.number("file_backup_count", 0, 1000, [&](int64_t v) { out.backups = v; });
}

// Where other OpenSandbox servers keep their database, and what their example files say. It is in the home of
// who starts the service, out of reach for the user it runs as, and there may be a database of theirs.
constexpr std::string_view kOthersDatabase = "~/.opensandbox/opensandbox.db";

void read_store(Section in, Config& out, const Environment& environment) {
  std::string type = "sqlite", path;
  in.text("type", type);
  if (type != "sqlite") {
    in.wrong("type", "this build keeps its state in SQLite only", "write type = \"sqlite\" or remove it");
  }
  in.text("path", path);
  bool others = path == kOthersDatabase;
  (others ? out.others_store_path : out.store_path) = expand_home(path, environment);
}

// Where a file asks for less than the default gives, sandboxes have no network; where it asks for both, it
// has to be made clear.
void keep_network_rules(ConfigFile& file, Config& config) {
  const toml::node* mode = file.root.at_path("docker.network_mode").node();
  bool is_none = mode != nullptr && mode->value_or(std::string_view()) == "none";
  const toml::node* url = file.root.at_path("egress.upstream_proxy.url").node();
  if (!config.egress.enabled || (!is_none && url == nullptr)) return;
  if (!Section(file, "egress").has("enabled")) {
    config.egress.enabled = false;
    return;
  }
  if (is_none) {
    file.lines["docker.network_mode"] = mode->source().begin.line;
    file.wrong("docker.network_mode",
               "it asks for sandboxes without a network, and egress.enabled gives them one",
               "remove egress.enabled, or this key");
  }
  if (url == nullptr) return;
  file.lines["egress.upstream_proxy.url"] = url->source().begin.line;
  file.wrong("egress.upstream_proxy.url",
             "this build sends nothing through another proxy, and sandboxes would go around it",
             "remove egress.enabled, so that they have no network, or this key");
}

// What other servers offer to protect, and leaving it out is not for this server to decide.
void refuse_missing_protection(ConfigFile& file, const Config& config) {
  if (file.root.contains("tenants") && !config.has_key()) {
    file.wrong("tenants",
               "this build has one key and no tenants, and without their keys anybody could use the server",
               "remove [tenants] and write api_key = \"...\" below [server]");
  }
}

// Variables that only other servers read. A key of which one half is missing protects nothing there either.
void look_at_variables_of_others(ConfigFile& file, const Environment& environment, Config& config) {
  constexpr std::array<const char*, 4> kOthers = {
      "OPENSANDBOX_STORE_POSTGRESQL_DSN", "OPENSANDBOX_SECURE_ACCESS_KEYS",
      "OPENSANDBOX_SECURE_ACCESS_ACTIVE_KEY", "SANDBOX_TENANTS_CONFIG_PATH"};
  for (const char* name : kOthers) {
    if (environment(name) == nullptr) continue;
    config.warnings.push_back(
        fmt::format("environment: {}: other OpenSandbox servers know it; it has no effect here", name));
  }
  if ((environment(kOthers[1]) == nullptr) != (environment(kOthers[2]) == nullptr))
    wrong_variable(file, environment(kOthers[1]) ? kOthers[2] : kOthers[1], "is missing beside the other one",
                   "set both or neither");
}

void read_renewal(Section in, RenewSection& out) {
  in.boolean("enabled", out.enabled);
  in.number("min_interval_seconds", 1, 86400, [&](int64_t v) { out.min_interval_seconds = v; });
}

void read_renewal_redis(Section in, RenewRedisSection& out) {
  constexpr size_t kMaxKey = 512;
  in.boolean("enabled", out.enabled);
  in.text("queue_key", out.queue_key);
  if (trim(out.queue_key).empty() || out.queue_key.size() > kMaxKey)
    in.wrong("queue_key", "must be the name of a list", "write queue_key = \"opensandbox:renew:intent\"");
  in.number("consumer_concurrency", 1, 64, [&](int64_t v) { out.consumer_concurrency = v; });
  std::string dsn;
  in.text("dsn", dsn);
  constexpr std::string_view kRemedy = "write dsn = \"redis://user:password@host:6379/0\"";
  if (trim(dsn).empty()) {
    if (out.enabled) in.wrong("dsn", "is missing, and renew_intent.redis.enabled is true", kRemedy);
    return;
  }
  auto address = parse_redis_address(trim(dsn));
  if (!address) return in.wrong("dsn", address.error().message, kRemedy);
  out.address = std::move(*address);
}

void read_environment(Config& config, const Environment& environment) {
  if (const char* key = environment("OPENSANDBOX_SERVER_API_KEY"))
    config.server.api_key = key;  // also when empty
  if (trim(config.server.api_key).empty()) config.server.api_key.clear();
  const char* insecure = environment("OPENSANDBOX_INSECURE_SERVER");
  config.insecure_acknowledged = insecure != nullptr && std::string_view(insecure) == "YES";
}

}  // namespace

std::string_view to_string(RuntimeType type) {
  switch (type) {
    case RuntimeType::native:
      return "native";
    case RuntimeType::docker:
      return "docker";
    case RuntimeType::kubernetes:
      return "kubernetes";
  }
  return "native";
}

std::string Config::database_path() const {
  return store_path.empty() ? native.state_dir + "/db/opensandbox.db" : store_path;
}

std::string config_path(const std::optional<std::string>& flag, const Environment& environment) {
  if (flag) return expand_home(*flag, environment);
  if (const char* path = environment("SANDBOX_CONFIG_PATH"); path != nullptr && *path != '\0') {
    return expand_home(path, environment);
  }
  return expand_home("~/.sandbox.toml", environment);
}

Result<Config> load_config(const std::string& path, const Environment& environment) {
  auto text = read_file(path);
  if (!text && text.error().code == Code::not_found) return parse_config("", "", environment);
  if (!text) return std::unexpected(std::move(text.error()).in("configuration"));
  return parse_config(*text, path, environment);
}

Result<Config> parse_config(std::string_view text, const std::string& source,
                            const Environment& environment) {
  toml::parse_result parsed = toml::parse(text, source);
  std::string where = source.empty() ? "configuration" : source;
  if (!parsed) {
    const auto& at = parsed.error().source().begin;
    std::string why(parsed.error().description());  // it may quote what it saw
    std::ranges::replace_if(why, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    return fail(Code::invalid_argument,
                fmt::format("{}:{}:{}: not valid TOML: {}", where, at.line, at.column, why));
  }
  ConfigFile file{.root = parsed.table(), .source = where};
  Config config;
  config.source = source;
  config.warnings = TRY(check_keys(file));
  read_server({file, "server"}, config.server);
  read_log({file, "log"}, config.log_level);
  read_log_file({file, "log"}, config.log_file, environment);
  read_runtime(file, config.runtime);
  read_secure_runtime(file, config);
  read_native({file, "native"}, config.native);
  read_docker(file, environment, config);
  read_registry({file, "registry"}, config.registry);
  read_proxy({file, "proxy"}, config.proxy);
  read_renewal({file, "renew_intent"}, config.renew);
  read_renewal_redis({file, "renew_intent.redis"}, config.renew.redis);
  read_sandbox(file, environment, config);
  read_storage({file, "storage"}, config.storage);
  read_egress({file, "egress"}, config.egress);
  read_deny_webhook({file, "egress"}, config.egress);
  read_store({file, "store"}, config, environment);
  read_environment(config, environment);
  refuse_missing_protection(file, config);
  keep_network_rules(file, config);
  check_reach(file, config);
  look_at_variables_of_others(file, environment, config);
  if (file.error) return std::unexpected(std::move(*file.error));
  if (config.renew.redis.enabled && !config.renew.enabled) {
    config.warnings.push_back(
        fmt::format("{}: renew_intent.redis.enabled: has no effect without renew_intent.enabled = true",
                    file.place("renew_intent.redis.enabled")));
  }
  if (!config.others_store_path.empty()) {
    config.warnings.push_back(
        fmt::format("{}: store.path: this is where other OpenSandbox servers keep their database; the one of "
                    "this server is below native.state_dir",
                    file.place("store.path")));
  }
  config.lines = std::move(file.lines);
  return config;
}

std::string Config::standard_runtime() const {
  if (effective_runtime() == RuntimeType::docker) return "docker";
  return secure.type == SecureType::gvisor ? "runsc" : "native";
}

bool Config::offers(std::string_view name) const {
  if (name == standard_runtime() || std::ranges::find(runtime.also, name) != runtime.also.end()) return true;
  return name == "native" && secure.type == SecureType::none;
}

std::string Config::runtime_for(std::string_view image) const {
  // A rule is for an image, however that is written.
  const auto written = image::spellings(std::string(image), registry.standard);
  auto rule = std::ranges::find_if(runtime.rules, [&](const RuntimeRule& one) {
    return std::ranges::any_of(written,
                               [&](const std::string& name) { return image::matches(one.image, name); });
  });
  return rule == runtime.rules.end() ? std::string() : rule->runtime;
}

std::string Config::place(const std::string& key) const {
  std::string file = source.empty() ? "configuration" : source;
  auto found = lines.find(key);
  return fmt::format("{}: {}", found == lines.end() ? file : fmt::format("{}:{}", file, found->second), key);
}

bool is_loopback_host(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (iequals(host, "localhost") || iequals(host, "localhost.")) return true;
  std::string text(host);
  in_addr v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

Result<std::string> choose_state_dir(const NativeSection& native, bool is_root,
                                     const Environment& environment) {
  if (native.state_dir_given || is_root) return native.state_dir;
  // A relative path there means nothing, says the specification of these variables.
  if (const char* state = environment("XDG_STATE_HOME"); state != nullptr && *state == '/')
    return std::string(state) + "/opensandbox";
  if (const char* home = environment("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.local/state/opensandbox";
  return fail(Code::invalid_argument,
              "there is no place for the files of the service; set HOME, or native.state_dir");
}

Result<void> check_exposure(const Config& config) {
  if (config.has_key() || is_loopback_host(config.server.host) || config.insecure_acknowledged) return {};
  return fail(
      Code::permission_denied,
      "server.host is not a loopback address and there is no API key, so anybody who reaches it could run "
      "programs here; set server.api_key (or OPENSANDBOX_SERVER_API_KEY), set server.host = \"127.0.0.1\", "
      "or set "
      "OPENSANDBOX_INSECURE_SERVER=YES if the network in front of it is trusted");
}

}  // namespace osb::server
