#include "server/config.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/strings.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_UNDEF_MACROS 0
#include <toml++/toml.h>

namespace osb::server {
namespace {

// One section of the file. The first mistake is kept; later reads give their defaults.
class Section {
 public:
  Section(const toml::table& root, std::string name, std::optional<Error>& error)
      : name_(std::move(name)), error_(error) {
    const toml::node* node = root.get(name_);
    if (node == nullptr) return;
    table_ = node->as_table();
    if (table_ == nullptr)
      wrong(name_, "must be a table", fmt::format("write it as [{}] with its keys below", name_));
  }

  bool has(std::string_view key) const { return find(key) != nullptr; }

  void text(std::string_view key, std::string& out) {
    if (const toml::node* node = find(key)) {
      if (auto value = node->value_exact<std::string>()) {
        out = *value;
      } else {
        wrong(path(key), "must be a string", fmt::format("write {} = \"...\"", key));
      }
    }
  }

  void number(std::string_view key, int64_t low, int64_t high, const std::function<void(int64_t)>& set) {
    if (const toml::node* node = find(key)) {
      auto value = node->value_exact<int64_t>();
      if (value && *value >= low && *value <= high) return set(*value);
      std::string range = high == std::numeric_limits<int64_t>::max()
                              ? fmt::format("of at least {}", low)
                              : fmt::format("from {} to {}", low, high);
      wrong(path(key), "must be a whole number " + range,
            fmt::format("correct it, or remove {} to get the default", key));
    }
  }

  void boolean(std::string_view key, bool& out) {
    if (const toml::node* node = find(key)) {
      if (auto value = node->value_exact<bool>()) {
        out = *value;
      } else {
        wrong(path(key), "must be true or false", fmt::format("write {} = true, or remove it", key));
      }
    }
  }

  void texts(std::string_view key, std::vector<std::string>& out) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::array* array = node->as_array();
    std::vector<std::string> values;
    for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
      auto value = array->get(i)->value_exact<std::string>();
      if (!value) array = nullptr;
      if (value) values.push_back(*value);
    }
    if (array == nullptr)
      return wrong(path(key), "must be a list of strings", fmt::format("write {} = [\"...\"]", key));
    out = std::move(values);
  }

  void text_map(std::string_view key, std::map<std::string, std::string>& out) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
      return wrong(path(key), "must be a table", fmt::format("write [{}] and its entries below", path(key)));
    }
    for (const auto& [name, entry] : *table) {
      auto value = entry.value_exact<std::string>();
      std::string where = fmt::format("{}.{}", path(key), name.str());
      if (!value) return wrong(where, "must be a string", "write the name, '=' and a quoted text");
      out.insert_or_assign(std::string(name.str()), *value);
    }
  }

  void wrong(const std::string& where, std::string_view cause, std::string_view remedy) {
    if (!error_) error_ = Error{Code::invalid_argument, 0, fmt::format("{}: {}; {}", where, cause, remedy)};
  }
  std::string path(std::string_view key) const { return fmt::format("{}.{}", name_, key); }

 private:
  const toml::node* find(std::string_view key) const {
    return table_ != nullptr ? table_->get(key) : nullptr;
  }

  std::string name_;
  std::optional<Error>& error_;
  const toml::table* table_ = nullptr;
};

constexpr int64_t kNoMaximum = std::numeric_limits<int64_t>::max();

std::string without_scheme(std::string_view eip) {
  for (std::string_view scheme : {"http://", "https://"}) {
    if (eip.starts_with(scheme)) eip.remove_prefix(scheme.size());
  }
  while (eip.ends_with('/')) eip.remove_suffix(1);
  return std::string(eip);
}

void read_server(Section in, ServerSection& out) {
  in.text("host", out.host);
  if (trim(out.host).empty()) in.wrong("server.host", "must not be empty", "write host = \"127.0.0.1\"");
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
  in.texts("cors_origins", out.cors_origins);
}

void read_runtime(Section in, RuntimeSection& out) {
  std::string type = "native", fallback;
  in.text("type", type);
  in.text("fallback", fallback);
  if (type == "docker") {
    out.type = RuntimeType::docker;
  } else if (type == "kubernetes") {
    out.type = RuntimeType::kubernetes;
  } else if (type != "native") {
    in.wrong("runtime.type", "must be native, docker or kubernetes", "write type = \"native\"");
  }
  if (!fallback.empty() && fallback != "native") {
    in.wrong("runtime.fallback", "must be native", "write fallback = \"native\" or remove it");
  }
  out.fallback_native = fallback == "native" && out.type != RuntimeType::native;
  if (out.type != RuntimeType::native && !out.fallback_native) {
    in.wrong("runtime.type", fmt::format("this build has no {} runtime", to_string(out.type)),
             "write type = \"native\", or add fallback = \"native\" to run this file on the native runtime");
  }
}

void require_absolute(Section& in, std::string_view key, std::string_view path) {
  if (!path.starts_with('/')) in.wrong(in.path(key), "must be an absolute path", "start it with '/'");
}

void read_native(Section in, NativeSection& out) {
  in.text("state_dir", out.state_dir);
  out.state_dir_given = in.has("state_dir");
  require_absolute(in, "state_dir", out.state_dir);
  in.text("user", out.user);
  if (out.user.empty())
    in.wrong("native.user", "must not be empty", "name the account that the server runs as");
  in.number("pids_limit", 16, 1 << 22, [&](int64_t v) { out.pids_limit = v; });
  in.texts("host_paths", out.host_paths);
  for (const std::string& path : out.host_paths) require_absolute(in, "host_paths", path);
  in.text_map("images", out.images);
  for (const auto& [name, path] : out.images) require_absolute(in, "images." + name, path);
  in.text_map("image_aliases", out.image_aliases);
  for (const auto& [name, target] : out.image_aliases) {
    if (target.empty() || target.find('*') != target.npos) {
      in.wrong(in.path("image_aliases." + name), "must name one image", "write the name of a local image");
    }
  }
}

std::string expand_home(std::string path, const Environment& environment) {
  const char* home = environment("HOME");
  if (path.starts_with("~/") && home != nullptr) return std::string(home) + path.substr(1);
  return path;
}

void read_store(Section in, std::string& path, const Environment& environment) {
  std::string type = "sqlite";
  in.text("type", type);
  if (type != "sqlite") {
    in.wrong("store.type", "this build keeps its state in SQLite only",
             "write type = \"sqlite\" or remove it");
  }
  in.text("path", path);
  path = expand_home(path, environment);
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
  if (!text && text.error().code == Code::not_found) {
    log::info("no configuration file, using the defaults", {{"path", path}});
    return parse_config("", "", environment);
  }
  if (!text) return std::unexpected(std::move(text.error()).in("configuration"));
  return parse_config(*text, path, environment);
}

Result<Config> parse_config(std::string_view text, const std::string& source,
                            const Environment& environment) {
  toml::parse_result parsed = toml::parse(text, source);
  std::string where = source.empty() ? "configuration" : source;
  if (!parsed) {
    const auto& at = parsed.error().source().begin;
    return fail(Code::invalid_argument, fmt::format("{}:{}:{}: not valid TOML: {}", where, at.line, at.column,
                                                    parsed.error().description()));
  }
  const toml::table& root = parsed.table();
  std::optional<Error> error;
  Config config;
  config.source = source;
  read_server({root, "server", error}, config.server);
  Section(root, "log", error).text("level", config.log_level);
  read_runtime({root, "runtime", error}, config.runtime);
  read_native({root, "native", error}, config.native);
  Section(root, "proxy", error).boolean("open", config.proxy.open);
  read_store({root, "store", error}, config.store_path, environment);
  if (error) return std::unexpected(std::move(*error).in(where));
  read_environment(config, environment);
  return config;
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
