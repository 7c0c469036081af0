#pragma once

// The configuration: a TOML file, overridden by a few environment variables, with a default for everything.
// Loaded once, checked completely, and immutable afterwards. A key, section or value that nobody knows is an
// error; one that other OpenSandbox servers know and this one does not use is a warning (config_keys.h).

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sandbox/egress_target.h"
#include "server/redis_address.h"

namespace osb::server {

struct ServerSection {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;
  std::string api_key;  // "" means none
  std::string eip;  // public name for endpoint strings, without scheme and trailing slash; may have a path
  std::optional<int64_t> max_sandbox_timeout_seconds;
  int64_t timeout_keep_alive =
      150;  // seconds; clients keep idle connections for 30 and must never win that race
  int64_t timeout_graceful_shutdown = 5;
  int64_t limit_concurrency = 1024;  // creates and changes in flight; 0 means no limit
  int64_t backlog = 2048;
  int64_t max_connections = 16384;  // fewer where this process may not have two descriptors for each
  std::vector<sandbox::IpPrefix> trusted_proxies;  // whose X-Forwarded-* are believed; see server/forwarded.h
  std::vector<std::string>
      cors_origins;  // without a key: pages that may call; with one the default is every origin
};

enum class RuntimeType { native, docker, kubernetes };
std::string_view to_string(RuntimeType type);

// Creates of images like this one (a name as clients write it, '*' for any characters) go to this runtime.
struct RuntimeRule {
  std::string image, runtime;
};

struct RuntimeSection {
  RuntimeType type = RuntimeType::native;
  bool fallback_native = false;
  std::vector<std::string> also;   // further runtimes that a create may name: native, docker, runsc
  std::vector<RuntimeRule> rules;  // for creates that name none; the first that fits
};

enum class SecureType { none, gvisor, kata, firecracker };

// What stands between every sandbox and the kernel, besides what its runtime has; see config_runtime.h.
struct SecureSection {
  SecureType type = SecureType::none;
  std::string docker_runtime;     // of an engine's list
  std::string k8s_runtime_class;  // means nothing here
  std::string runsc;              // its executable; "": looked for in the usual places
  std::string platform;           // of runsc; "": the first that works
};

struct NativeSection {
  std::string state_dir = "/var/lib/opensandbox";
  bool state_dir_given = false;  // by the file; see choose_state_dir()
  std::string user = "opensandbox";
  int64_t pids_limit = 4096;
  std::vector<std::string> host_paths;
  std::map<std::string, std::string> images;
  std::map<std::string, std::string> image_aliases;  // a name, or a pattern with '*' -> a local name
};

// The Docker runtime; see server/config_docker.h.
struct DockerSection {
  std::string socket = "/var/run/docker.sock";
  // Instead of the socket; see server/config_engine.h.
  std::string tcp_host = {};  // "": the socket
  uint16_t tcp_port = 0;
  std::string tls_ca = {}, tls_cert = {}, tls_key = {};  // files; without the first: in the clear
  bool remote = false;                                   // the engine is on another host
  bool remote_given = false;                             // the file says so, or says that it is not
  // When it turns out that the engine has other files than this host.
  bool may_be_remote() const {
    return !remote && !remote_given && !direct && !adopt && network_mode != "host";
  }
  std::string network_mode = "bridge";  // or "none", or the name of a network
  int64_t api_timeout = 180;            // seconds
  std::vector<std::string> drop_capabilities = {"AUDIT_WRITE", "MKNOD",     "NET_ADMIN",
                                                "NET_RAW",     "SYS_ADMIN", "SYS_MODULE",
                                                "SYS_PTRACE",  "SYS_TIME",  "SYS_TTY_CONFIG"};
  std::string apparmor_profile;      // "": the engine's
  std::string seccomp_profile = {};  // "": the engine's; "unconfined"; or a file that root reads
  std::map<std::string, std::string> sandbox_env = {};  // of every sandbox that says nothing else
  std::vector<std::string> sandbox_binds = {};          // in every container, as an engine writes them
  bool no_new_privileges = true;
  int64_t pids_limit = 4096;
  bool foreign_volumes = true;                             // volumes that others have made may be mounted
  bool adopt = false;                                      // containers of the original server are taken over
  std::string adopt_metadata = "~/.opensandbox/metadata";  // where that server kept what has changed of them
  bool direct = false;  // ports are published, and endpoints go past this server
  std::string publish_host = "127.0.0.1", host_ip;
  int64_t port_range_min = 0, port_range_max = 0;  // 0: the engine chooses any
};

// Instead of standard error; the file is opened and turned over by whoever starts the service.
struct LogFileSection {
  bool enabled = false;
  std::string path = "~/logs/opensandbox/server.log";  // '~' is resolved when the file is read
  int64_t max_bytes = 100 << 20;
  int64_t backups = 5;
};

// Where images come from that are not on this host.
struct RegistrySection {
  std::string standard = "docker.io";          // "default": of names without a host
  std::string pull_policy = "if-not-present";  // or "always", "never"
  std::vector<std::string> plain_hosts;        // may be spoken to without TLS; loopback always may
  std::vector<std::string> ca_files;           // certificates believed besides the system's
  std::string auth_file;                       // of `docker login`; "" for none
  int64_t disk_budget_gb = 0;                  // what images may take; 0: any number
  std::map<std::string, std::string> mirrors;  // registry -> URL that is asked first
};

// What of the host sandboxes may be given.
struct StorageSection {
  std::vector<std::string> allowed_host_paths;  // with what is below; none: nothing
};

// What holds for creates that do not say otherwise, and two bounds on them. The file has them below
// [sandbox]; where it is silent, variables of the environment count (server/config_sandbox.h).
struct SandboxDefaults {
  std::optional<int64_t> timeout_seconds;  // of a create without a timeout; nothing: it never expires
  std::optional<int64_t> max_lifetime;     // seconds after its creation no sandbox lives on, renewed or not
  // Sandboxes of this image and these limits that wait for creates which ask for the same.
  std::optional<int64_t> pool_size;
  std::string pool_image = "host";
  std::map<std::string, std::string> pool_limits = {};
  std::optional<int64_t> cpu_quota;  // percent of a core; 0 means no limit
  std::optional<int64_t> memory_limit_kb;
  std::optional<int64_t> disk_limit_kb;
  std::optional<bool> allow_network;
  std::optional<int64_t> shm_bytes;  // "shm_size", of /dev/shm; absent: by the memory limit

  // Without a policy: the public internet, and nothing private.
  bool has_network() const { return allow_network.value_or(true); }
};

struct EgressSection {
  bool enabled = true;                    // without it sandboxes have no network
  std::vector<std::string> name_servers;  // none: the host's
  std::vector<std::string> deny_always, allow_always;
  std::string deny_webhook;  // who is told of lookups that were denied; empty: nobody
  std::string image;         // of containers that police others, with an engine on another host; empty: none
};

// Which requests to sandboxes' ports need more than the id of the sandbox; see server/endpoint_token.h.
struct ProxySection {
  bool open = false;  // none, on a server with a key too
  // Requests and streams through the proxy to one sandbox at the same time; 0 means no limit.
  int64_t max_in_flight_per_sandbox = 4096;
  // Below it every port of every sandbox has a host name of its own (preview_host.h); "": none has.
  std::string preview_domain = "localhost";
};

// Uses that gateways report; see server/renew_intents.h.
struct RenewRedisSection {
  bool enabled = false;
  RedisAddress address;
  std::string queue_key = "opensandbox:renew:intent";
  int64_t consumer_concurrency = 8;
};

// Whether a use of a sandbox's ports may renew it; see server/access_renewal.h.
struct RenewSection {
  bool enabled = false;
  int64_t min_interval_seconds = 60;
  RenewRedisSection redis;
};

struct Config {
  ServerSection server;
  RuntimeSection runtime;
  SecureSection secure;
  NativeSection native;
  DockerSection docker;
  RegistrySection registry;
  ProxySection proxy;
  RenewSection renew;
  SandboxDefaults sandbox;
  StorageSection storage;
  EgressSection egress;
  std::string log_level = "INFO";
  LogFileSection log_file;
  std::string store_path;                 // "": below the state directory
  std::string others_store_path;          // the file names the usual place of other servers: not used
  std::string source;                     // the file it came from; "" for the defaults
  bool insecure_acknowledged = false;     // OPENSANDBOX_INSECURE_SERVER=YES
  std::vector<std::string> warnings;      // for the log of whoever starts the service
  std::map<std::string, uint32_t> lines;  // of the keys in the file, by their dotted names

  // "config.toml:7: native.user", for a message about a value that only the host can judge.
  std::string place(const std::string& key) const;
  bool has_key() const { return !server.api_key.empty(); }
  // Whether a sandbox's ports need a token or the key.
  bool guards_ports() const { return has_key() && !proxy.open; }
  RuntimeType effective_runtime() const {
    return runtime.fallback_native ? RuntimeType::native : runtime.type;
  }
  // The runtime of a create that names none and that no rule is for.
  std::string standard_runtime() const;
  // Whether a create may have this runtime. Where all sandboxes are to be isolated more, less is only there
  // when runtime.also names it.
  bool offers(std::string_view name) const;
  // By the first rule for this image; "": the standard one.
  std::string runtime_for(std::string_view image) const;
  std::string database_path() const;
};

// Gives null for an unset variable. Production code passes ::getenv.
using Environment = std::function<const char*(const char*)>;

// --config, else SANDBOX_CONFIG_PATH, else ~/.sandbox.toml.
std::string config_path(const std::optional<std::string>& flag, const Environment& environment);
// A missing file is the default configuration. Errors name file, line, key, cause and remedy, never the
// configured value.
Result<Config> load_config(const std::string& path, const Environment& environment);
Result<Config> parse_config(std::string_view toml, const std::string& source, const Environment& environment);

// Where a service keeps its files: what the file says; else, for an ordinary user,
// $XDG_STATE_HOME/opensandbox or
// ~/.local/state/opensandbox.
Result<std::string> choose_state_dir(const NativeSection& native, bool is_root,
                                     const Environment& environment);

// Refuses to serve without a key on anything but loopback, unless the environment says that this is wanted.
Result<void> check_exposure(const Config& config);

// 127.0.0.0/8, ::1, localhost; with or without brackets.
bool is_loopback_host(std::string_view host);

}  // namespace osb::server
