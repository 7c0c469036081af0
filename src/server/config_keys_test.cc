#include "server/config_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "base/fd.h"
#include "base/strings.h"
#include "server/config.h"
#include "server/config_examples.h"

namespace osb::server {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// With a key, which [tenants] asks for.
const char* variable(const char* name) {
  return std::string_view(name) == "OPENSANDBOX_SERVER_API_KEY" ? "k" : nullptr;
}

Result<Config> parse(const std::string& text) { return parse_config(text, "f", variable); }

std::vector<std::string_view> names(std::string_view list) {
  return list.empty() ? std::vector<std::string_view>{} : split(list, ' ');
}

std::set<std::string> read_keys() {
  std::set<std::string> out;
  for (const KnownSection& section : known_sections()) {
    for (std::string_view name : names(section.read)) out.insert(fmt::format("{}.{}", section.name, name));
  }
  return out;
}

// No key takes a date: one that is called read, and is not looked at, would pass.
TEST(ConfigKeys, WhatIsCalledReadIsRead) {
  for (const KnownSection& section : known_sections()) {
    for (std::string_view name : names(section.read)) {
      std::string key = name == "*" ? "x" : std::string(name);
      auto config = parse(fmt::format("[{}]\n{} = 1979-05-27\n", section.name, key));
      ASSERT_FALSE(config) << section.name << "." << name;
      EXPECT_THAT(config.error().message, HasSubstr(fmt::format("f:2: {}.{}: must be", section.name, key)));
    }
  }
}

TEST(ConfigKeys, EachOfOtherServersIsOneWarning) {
  for (const KnownSection& section : known_sections()) {
    for (std::string_view name : names(section.foreign)) {
      std::string key = name == "*" ? "x" : std::string(name);
      auto config = parse(fmt::format("[{}]\n{} = [1, \"x\"]\n", section.name, key));
      ASSERT_TRUE(config) << section.name << "." << name << ": " << config.error().message;
      ASSERT_THAT(config->warnings, SizeIs(1)) << section.name << "." << name;
      std::string shown = name == "*" ? std::string(section.name) : fmt::format("{}.{}", section.name, name);
      EXPECT_THAT(config->warnings[0], HasSubstr(shown + ": ")) << config->warnings[0];
      EXPECT_THAT(config->warnings[0], HasSubstr("f:")) << config->warnings[0];
    }
  }
}

// Every key that other servers document, in a file as their users have it: none is unknown, and those that
// could mean something here do.
constexpr std::string_view kEverything = R"toml(
[server]
host = "127.0.0.1"
port = 8080
timeout_keep_alive = 30
timeout_graceful_shutdown = 5
limit_concurrency = 1024
backlog = 2048
thread_pool_size = 200
loop = "uvloop"
http = "httptools"
api_key = "k"
eip = "https://sandboxes.example/base"
max_sandbox_timeout_seconds = 86400
[log]
level = "info"
file_enabled = true
file_path = "/var/log/x.log"
access_file_path = "/var/log/y.log"
file_max_bytes = 1000
file_backup_count = 0
[proxy]
resolve_internal = false
[runtime]
type = "docker"
fallback = "native"
execd_image = "registry.example/execd:1"
execd_run_as_init = true
[docker]
network_mode = "host"
api_timeout = 180
host_ip = "10.0.0.1"
drop_capabilities = ["MKNOD"]
apparmor_profile = ""
no_new_privileges = true
seccomp_profile = ""
pids_limit = 4096
port_range_min = 40000
port_range_max = 60000
publish_host = "0.0.0.0"
sandbox_binds = ["/a:/b:ro"]
[docker.sandbox_env]
TZ = "UTC"
[kubernetes]
kubeconfig_path = ""
namespace = "n"
service_account = "s"
workload_provider = "batchsandbox"
batchsandbox_template_file = "/t.yaml"
image_pull_policy = "IfNotPresent"
sandbox_create_timeout_seconds = 60
sandbox_create_poll_interval_seconds = 1.0
snapshot_create_timeout_seconds = 900
informer_enabled = true
informer_resync_seconds = 300
informer_watch_timeout_seconds = 60
read_qps = 0.0
write_qps = 0.0
read_burst = 0
write_burst = 0
insecure_skip_tls_verify = false
pool_acquisition_timeout_seconds = 30
fastpath_endpoint = "e:9090"
fastpath_timeout_seconds = 30.0
fastpath_wait_ready_seconds = 30.0
fastpath_resource_pool = "p"
template_s3_publish_secret = "s"
execd_init_resources = { limits = { cpu = "1" }, requests = { cpu = "1" } }
[agent_sandbox]
template_file = "/t.yaml"
shutdown_policy = "Delete"
ingress_enabled = true
[ingress]
mode = "gateway"
gateway.address = "*.gw.example"
gateway.route.mode = "wildcard"
secure_access.active_key = "a"
[[ingress.secure_access.keys]]
key_id = "a"
key = "c2VjcmV0"
[egress]
image = "registry.example/egress:1"
mode = "dns+nft"
disable_ipv6 = true
otlp_endpoint = ""
readiness_timeout_seconds = 30.0
requests = { cpu = "1" }
limits = { cpu = "1" }
[egress.upstream_proxy]
url = "http://proxy.example:3128"
authorization = "Basic eA=="
ca_cert_path = "/ca.pem"
ca_secret_name = "ca"
[storage]
allowed_host_paths = []
volume_default_size = "1Gi"
ossfs_mount_root = "/mnt/ossfs"
[store]
type = "sqlite"
path = "~/.opensandbox/opensandbox.db"
[store.postgresql]
dsn = ""
min_pool_size = 1
max_pool_size = 10
connect_timeout_seconds = 5
pool_timeout_seconds = 5.0
snapshot_recovery_interval_seconds = 15.0
[secure_runtime]
type = ""
docker_runtime = ""
k8s_runtime_class = ""
[renew_intent]
enabled = true
min_interval_seconds = 60
redis.enabled = false
redis.dsn = ""
redis.queue_key = "q"
redis.consumer_concurrency = 8
[tenants]
provider = "http"
endpoint = "https://tenants.example"
max_stale_seconds = 300.0
timeout_seconds = 5.0
auth_header = "X"
auth_token = "t"
[otel]
enabled = false
endpoint = ""
service_name = "opensandbox-server"
export_interval_millis = 60000
)toml";

TEST(ConfigKeys, AFileWithEveryKeyOfOtherServersIsRead) {
  auto config = parse(std::string(kEverything));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.eip, "sandboxes.example/base");
  EXPECT_EQ(config->log_file.path, "/var/log/x.log");
  EXPECT_TRUE(config->renew.enabled);
  for (std::string_view unread : {"server.port:", "log.file_path:", "renew_intent.enabled:"}) {
    for (const std::string& warning : config->warnings) EXPECT_THAT(warning, testing::Not(HasSubstr(unread)));
  }
}

TEST(ConfigKeys, NoNameStandsTwice) {
  std::set<std::string> seen;
  for (const KnownSection& section : known_sections()) {
    for (std::string_view list : {section.read, section.foreign}) {
      for (std::string_view name : names(list)) {
        EXPECT_FALSE(name.empty()) << section.name << ": two blanks";
        EXPECT_TRUE(seen.insert(fmt::format("{}.{}", section.name, name)).second) << section.name << name;
      }
    }
  }
}

// Comments of the skeleton that are keys: "# port = 8080" below "[server]".
std::set<std::string> skeleton_keys() {
  std::set<std::string> out;
  std::string section;
  for (std::string_view line : split(*config_example(""), '\n')) {
    if (line.starts_with('[')) section = line.substr(1, line.size() - 2);
    size_t equals = line.find(" = ");
    if (!line.starts_with("# ") || equals == line.npos) continue;
    std::string name(line.substr(2, equals - 2));
    if (name.find(' ') != name.npos) continue;  // prose
    const KnownSection* known = find_section(section);
    out.insert(fmt::format("{}.{}", section, known && known->takes_any_name() ? "*" : name));
  }
  return out;
}

TEST(ConfigKeys, TheSkeletonHasEveryKeyThatIsRead) { EXPECT_EQ(skeleton_keys(), read_keys()); }

// Rows of the document: "| `server.port` | `8080` | ... |". Only keys have a dot in the first cell.
std::set<std::string> documented_keys() {
  std::set<std::string> out;
  auto text = read_file(OSB_CONFIGURATION_DOCUMENT);
  EXPECT_TRUE(text) << text.error().message;
  for (std::string_view line : split(text.value_or(""), '\n')) {
    constexpr std::string_view kStart = "| `";
    size_t end = line.find("` |");
    if (!line.starts_with(kStart) || end == line.npos) continue;
    std::string name(line.substr(kStart.size(), end - kStart.size()));
    if (name.find('.') != name.npos) out.insert(name);
  }
  return out;
}

TEST(ConfigKeys, TheDocumentHasEveryKeyThatIsRead) { EXPECT_EQ(documented_keys(), read_keys()); }

TEST(ConfigKeys, OurOwnExamplesHaveNoUnknownKey) {
  for (std::string_view name : config_example_names()) {
    auto config = parse(std::string(*config_example(name)));
    ASSERT_TRUE(config) << name << ": " << config.error().message;
  }
  EXPECT_THAT(parse(std::string(*config_example("native")))->warnings, IsEmpty());
}

TEST(ConfigKeys, AGuessIsCloseOrNotMade) {
  EXPECT_EQ(suggest_key("server", "prot"), "did you mean `port`?");
  EXPECT_EQ(suggest_key("server", "max_sandbox_timeout"), "did you mean `max_sandbox_timeout_seconds`?");
  EXPECT_THAT(suggest_key("server", "x"), HasSubstr("the keys there are host, port"));
  EXPECT_THAT(suggest_key("server", std::string(5000, 'a')), HasSubstr("the keys there are"));
  EXPECT_EQ(suggest_section("Native"), "did you mean [native]?");
  EXPECT_EQ(suggest_section("images"),
            "the sections are server, log, runtime, native, native.images, "
            "native.image_aliases, registry, registry.mirrors, proxy, sandbox, sandbox.pool_limits, store, "
            "docker, docker.sandbox_env, egress, "
            "storage, secure_runtime, "
            "renew_intent, renew_intent.redis");
  EXPECT_THAT(shown_name(std::string(5000, 'a')), SizeIs(63));
}

}  // namespace
}  // namespace osb::server
