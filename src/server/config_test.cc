#include "server/config.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/fd.h"

namespace osb::server {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using Variables = std::map<std::string, std::string>;

class FakeEnvironment {
 public:
  explicit FakeEnvironment(Variables values) : values_(std::move(values)) {}
  const char* operator()(const char* name) const {
    auto found = values_.find(name);
    return found == values_.end() ? nullptr : found->second.c_str();
  }

 private:
  Variables values_;
};

Result<Config> parse(std::string_view text, Variables environment = {}) {
  return parse_config(text, "test.toml", FakeEnvironment(std::move(environment)));
}

TEST(Config, DefaultsOfAnEmptyFile) {
  auto config = parse("");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.host, "127.0.0.1");
  EXPECT_EQ(config->server.port, 8080);
  EXPECT_FALSE(config->has_key());
  EXPECT_FALSE(config->server.max_sandbox_timeout_seconds);
  EXPECT_EQ(config->effective_runtime(), RuntimeType::native);
  EXPECT_FALSE(config->runtime.fallback_native);
  EXPECT_EQ(config->native.pids_limit, 4096);
  EXPECT_EQ(config->database_path(), "/var/lib/opensandbox/db/opensandbox.db");
  EXPECT_GT(config->server.timeout_keep_alive, 30) << "clients keep idle connections for 30 s";
}

TEST(Config, ReadsEveryKeyThatIsUsed) {
  auto config = parse(R"(
[server]
host = "0.0.0.0"
port = 9090
api_key = "k"
eip = "https://gw.example.com/base/"
max_sandbox_timeout_seconds = 60
timeout_keep_alive = 40
timeout_graceful_shutdown = 7
limit_concurrency = 0
backlog = 16
max_connections = 100
cors_origins = ["https://a.example"]
trusted_proxies = ["10.0.0.7", "2001:db8::/32"]
loop = "uvloop"
thread_pool_size = 200
[log]
level = "DEBUG"
[runtime]
type = "kubernetes"
fallback = "native"
execd_image = "registry.example/execd:1"
[kubernetes]
namespace = "x"
[native]
state_dir = "/srv/state"
user = "svc"
pids_limit = 100
host_paths = ["/opt/tools"]
[native.images]
python = "/images/python"
"a/b:1" = "/images/ab"
[native.image_aliases]
"python:*" = "python"
[proxy]
max_in_flight_per_sandbox = 9
preview_domain = "preview.example"
[sandbox]
shm_size = "2Gi"
cpu_quota = 150
memory_limit = 524288
disk_limit = 1048576
[storage]
allowed_host_paths = ["/srv/shared", "/data/"]
volume_default_size = "1Gi"
[store]
path = "~/state.db"
)",
                      {{"HOME", "/home/u"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->native.image_aliases, (std::map<std::string, std::string>{{"python:*", "python"}}));
  EXPECT_EQ(config->server.host, "0.0.0.0");
  EXPECT_EQ(config->server.port, 9090);
  EXPECT_EQ(config->server.api_key, "k");
  EXPECT_EQ(config->server.eip, "gw.example.com/base");
  EXPECT_EQ(config->server.max_sandbox_timeout_seconds, 60);
  EXPECT_EQ(config->server.timeout_keep_alive, 40);
  EXPECT_EQ(config->server.timeout_graceful_shutdown, 7);
  EXPECT_EQ(config->server.limit_concurrency, 0);
  EXPECT_EQ(config->server.backlog, 16);
  EXPECT_EQ(config->server.cors_origins, std::vector<std::string>{"https://a.example"});
  EXPECT_EQ(config->server.max_connections, 100);
  ASSERT_EQ(config->server.trusted_proxies.size(), 2u);
  EXPECT_TRUE(config->server.trusted_proxies[0].contains(*sandbox::parse_ip("10.0.0.7")));
  EXPECT_FALSE(config->server.trusted_proxies[0].contains(*sandbox::parse_ip("10.0.0.8")));
  EXPECT_TRUE(config->server.trusted_proxies[1].contains(*sandbox::parse_ip("2001:db8:1::1")));
  EXPECT_EQ(config->proxy.max_in_flight_per_sandbox, 9);
  EXPECT_EQ(config->proxy.preview_domain, "preview.example");
  EXPECT_EQ(config->sandbox.cpu_quota, 150);
  EXPECT_EQ(config->sandbox.memory_limit_kb, 524288);
  EXPECT_EQ(config->sandbox.disk_limit_kb, 1048576);
  EXPECT_EQ(config->log_level, "DEBUG");
  EXPECT_EQ(config->runtime.type, RuntimeType::kubernetes);
  EXPECT_TRUE(config->runtime.fallback_native);
  EXPECT_EQ(config->effective_runtime(), RuntimeType::native);
  EXPECT_EQ(config->native.state_dir, "/srv/state");
  EXPECT_EQ(config->native.user, "svc");
  EXPECT_EQ(config->native.pids_limit, 100);
  EXPECT_EQ(config->native.host_paths, std::vector<std::string>{"/opt/tools"});
  EXPECT_EQ(config->native.images,
            (std::map<std::string, std::string>{{"a/b:1", "/images/ab"}, {"python", "/images/python"}}));
  EXPECT_EQ(config->database_path(), "/home/u/state.db");
  EXPECT_EQ(config->sandbox.shm_bytes, int64_t{2} << 30);
  EXPECT_EQ(config->storage.allowed_host_paths, (std::vector<std::string>{"/srv/shared", "/data"}));
}

TEST(Config, MistakesNameKeyCauseAndRemedy) {
  struct Case {
    const char *toml, *key;
    int line = 2;
  };
  const Case refused[] = {
      {"[server]\nport = 0", "server.port"},
      {"[server]\nport = 65536", "server.port"},
      {"[server]\nport = \"8080\"", "server.port"},
      {"[server]\nport = 80.5", "server.port"},
      {"[server]\nhost = \"\"", "server.host"},
      {"[server]\nhost = 5", "server.host"},
      {"[server]\napi_key = 5", "server.api_key"},
      {"[server]\neip = []", "server.eip"},
      {"[server]\nmax_sandbox_timeout_seconds = 59", "server.max_sandbox_timeout_seconds"},
      {"[server]\ntimeout_keep_alive = 0", "server.timeout_keep_alive"},
      {"[server]\ntimeout_graceful_shutdown = 0", "server.timeout_graceful_shutdown"},
      {"[server]\nlimit_concurrency = -1", "server.limit_concurrency"},
      {"[server]\nbacklog = 0", "server.backlog"},
      {"[server]\ncors_origins = \"x\"", "server.cors_origins"},
      {"[server]\ncors_origins = [1]", "server.cors_origins"},
      {"server = 5", "server", 1},
      {"docker = 5", "docker", 1},
      {"[[log]]\nlevel = \"INFO\"", "log", 1},
      {"[log]\nlevel = 1", "log.level"},
      {"[log]\nlevel = \"verbose\"", "log.level"},
      {"[log]\nlevel = \"\"", "log.level"},
      {"[log]\nfile_enabled = \"yes\"", "log.file_enabled"},
      {"[log]\nfile_path = \"x.log\"\nfile_enabled = true", "log.file_path"},
      {"[log]\nfile_max_bytes = 0", "log.file_max_bytes"},
      {"[log]\nfile_backup_count = -1", "log.file_backup_count"},
      {"[proxy]\nopen = \"yes\"", "proxy.open"},
      {"[secure_runtime]\ntype = \"kata\"\ndocker_runtime = \"kata\"", "secure_runtime.type"},
      {"[runtime]\ntype = \"podman\"", "runtime.type"},
      {"[runtime]\ntype = 1", "runtime.type"},
      {"[runtime]\ntype = \"docker\"\n[docker]\nnetwork_mode = \"container:x\"", "docker.network_mode", 4},
      {"[runtime]\ntype = \"docker\"\n[docker]\nseccomp_profile = \"none\"", "docker.seccomp_profile", 4},
      {"[docker]\nsandbox_binds = [\"/a\"]", "docker.sandbox_binds"},
      {"[docker]\nsandbox_binds = [\"/a:b\"]", "docker.sandbox_binds"},
      {"[docker]\nsandbox_binds = [\":/b\"]", "docker.sandbox_binds"},
      {"[docker]\nsandbox_binds = [\"/a:/b:ro:x\"]", "docker.sandbox_binds"},
      {"[docker]\nsandbox_binds = [\"/a:/b:rubbish\"]", "docker.sandbox_binds"},
      {"[docker]\nsandbox_binds = [\"/a:/b:\"]", "docker.sandbox_binds"},
      {"[docker]\nsandbox_binds = [\"a/b:/c\"]", "docker.sandbox_binds"},
      {"[docker]\nadopt_metadata = \"//\"", "docker.adopt_metadata"},
      {"[docker.sandbox_env]\nA = 1", "docker.sandbox_env.A", 2},
      {"[docker.sandbox_env]\n\"A=B\" = \"x\"", "docker.sandbox_env", 1},
      {"[docker]\nadopt_metadata = \"metadata\"", "docker.adopt_metadata"},
      {"[runtime]\ntype = \"docker\"\n[secure_runtime]\ntype = \"gvisor\"\ndocker_runtime = \"runsc\"\n"
       "[docker]\nnetwork_mode = \"none\"",
       "docker.network_mode", 7},
      {"[runtime]\ntype = \"docker\"\n[secure_runtime]\ntype = \"gvisor\"\ndocker_runtime = \"runsc\"\n"
       "[sandbox]\nallow_network = false",
       "sandbox.allow_network", 7},
      {"[runtime]\ntype = \"docker\"\n[secure_runtime]\ntype = \"gvisor\"\ndocker_runtime = \"runsc\"\n"
       "[docker]\ndirect = true",
       "docker.direct", 7},
      {"[runtime]\ntype = \"docker\"\n[docker]\nnetwork_mode = \"none\"\ndirect = true", "docker.direct", 5},
      {"[runtime]\ntype = \"docker\"\n[docker]\nnetwork_mode = \"host\"\ndirect = true", "docker.direct", 5},
      {"[docker]\ndirect = \"yes\"", "docker.direct"},
      {"[docker]\nadopt = 1", "docker.adopt"},
      {"[docker]\nforeign_volumes = \"no\"", "docker.foreign_volumes"},
      {"[docker]\npublish_host = \"localhost\"", "docker.publish_host"},
      {"[docker]\npublish_host = \"::1\"", "docker.publish_host"},
      {"[docker]\nport_range_min = 1023", "docker.port_range_min"},
      {"[docker]\nport_range_max = 65536", "docker.port_range_max"},
      {"[docker]\nport_range_min = 40000\nport_range_max = 40099", "docker.port_range_max", 3},
      {"[docker]\nport_range_min = 50000\nport_range_max = 40000", "docker.port_range_max", 3},
      {"[docker]\nport_range_min = 65500", "docker.port_range_min"},
      {"[docker]\nport_range_max = 1100", "docker.port_range_max"},
      {"[docker]\nsocket = \"tcp://10.0.0.1:2375\"", "docker.socket"},
      {"[docker]\nhost = \"tcp://10.0.0.1:2375\"", "docker.host"},
      {"[docker]\nhost = \"tcp://127.0.0.1:0\"", "docker.host"},
      {"[docker]\nhost = \"tcp://127.0.0.1:70000\"", "docker.host"},
      {"[docker]\nhost = \"tcp://::1:2376\"", "docker.host"},
      {"[docker]\nhost = \"tcp://[::1\"", "docker.host"},
      {"[docker]\nhost = \"tcp://\"", "docker.host"},
      {"[docker]\nhost = \"tcp://a/b\"", "docker.host"},
      {"[docker]\nhost = \"ssh://me@there\"", "docker.host"},
      {"[docker]\nhost = \"unix://run/x\"", "docker.host"},
      {"[docker]\nsocket = \"/run/x\"\nhost = \"unix:///run/x\"", "docker.host", 3},
      {"[docker]\nhost = \"unix:///run/x\"\ntls_ca = \"/ca\"", "docker.host"},
      {"[docker]\nhost = \"tcp://h\"\ntls_ca = \"ca\"", "docker.host"},
      {"[docker]\nhost = \"tcp://h\"\ntls_ca = \"/ca\"\ntls_cert = \"/c\"", "docker.host"},
      {"[docker]\nhost = \"tcp://h\"\ntls_cert = \"/c\"\ntls_key = \"/k\"", "docker.host"},
      {"[docker]\ntls_ca = \"/ca\"", "docker.tls_ca"},
      {"[docker]\ndrop_capabilities = [\"NET RAW\"]", "docker.drop_capabilities"},
      {"[docker]\npids_limit = 1", "docker.pids_limit"},
      {"[runtime]\ntype = \"kubernetes\"", "runtime.type"},
      {"[runtime]\nfallback = \"docker\"", "runtime.fallback"},
      {"[native]\nstate_dir = \"relative\"", "native.state_dir"},
      {"[native]\nuser = \"\"", "native.user"},
      {"[native]\npids_limit = 1", "native.pids_limit"},
      {"[native]\nhost_paths = [\"x\"]", "native.host_paths"},
      {"[native]\nhost_paths = \"/x\"", "native.host_paths"},
      {"[native]\nimages = 5", "native.images"},
      {"[native.images]\npython.slim = \"/x\"", "native.images.python"},
      {"[native.images]\nx = 5", "native.images.x"},
      {"[native.images]\nx = \"relative\"", "native.images.x"},
      {"[native.image_aliases]\nx = 5", "native.image_aliases.x"},
      {"[native.image_aliases]\nx = \"a*\"", "native.image_aliases.x"},
      {"[sandbox]\nshm_size = 5", "sandbox.shm_size"},
      {"[sandbox]\npool_size = 10001", "sandbox.pool_size"},
      {"[sandbox]\npool_image = \" \"", "sandbox.pool_image"},
      {"[sandbox]\npool_limits = { memory = \"lots\" }", "sandbox.pool_limits"},
      {"[sandbox]\nshm_size = \"much\"", "sandbox.shm_size"},
      {"[sandbox]\nshm_size = \"1Ki\"", "sandbox.shm_size"},
      {"[storage]\nallowed_host_paths = \"/x\"", "storage.allowed_host_paths"},
      {"[storage]\nallowed_host_paths = [\"x\"]", "storage.allowed_host_paths"},
      {"[storage]\nallowed_host_paths = [\"/\"]", "storage.allowed_host_paths"},
      {"[storage]\nallowed_host_paths = [\"/a/../b\"]", "storage.allowed_host_paths"},
      {"[storage]\nallowed_host_paths = [\"/a//b\"]", "storage.allowed_host_paths"},
      {"[sandbox]\nallow_network = 1", "sandbox.allow_network"},
      {"[sandbox]\ntimeout_seconds = 59", "sandbox.timeout_seconds"},
      {"[sandbox]\nmax_lifetime = 0", "sandbox.max_lifetime"},
      {"[sandbox]\nmax_lifetime = \"1h\"", "sandbox.max_lifetime"},
      {"[store]\ntype = \"postgresql\"", "store.type"},
      {"[renew_intent.redis]\nqueue_key = \" \"", "renew_intent.redis.queue_key"},
      {"[renew_intent.redis]\nconsumer_concurrency = 65", "renew_intent.redis.consumer_concurrency"},
      {"[renew_intent.redis]\ndsn = \"rediss://h?ssl_cert_reqs=none\"", "renew_intent.redis.dsn"},
      {"[renew_intent]\nredis.dsn = \"redis://\"", "renew_intent.redis.dsn"},
      {"[store]\npath = 5", "store.path"},
      {"[server]\nmax_connections = 63", "server.max_connections"},
      {"[server]\ntrusted_proxies = \"10.0.0.1\"", "server.trusted_proxies"},
      {"[server]\ntrusted_proxies = [\"proxy.example\"]", "server.trusted_proxies"},
      {"[server]\ntrusted_proxies = [\"*.example\"]", "server.trusted_proxies"},
      {"[server]\ntrusted_proxies = [\"10.0.0.0/33\"]", "server.trusted_proxies"},
      {"[server]\ntrusted_proxies = [\"\"]", "server.trusted_proxies"},
      {"[proxy]\nmax_in_flight_per_sandbox = -1", "proxy.max_in_flight_per_sandbox"},
      {"[proxy]\npreview_domain = \".example\"", "proxy.preview_domain"},
      {"[proxy]\npreview_domain = \"a b\"", "proxy.preview_domain"},
      {"[sandbox]\ncpu_quota = -1", "sandbox.cpu_quota"},
      {"[sandbox]\ncpu_quota = 102401", "sandbox.cpu_quota"},
      {"[sandbox]\ncpu_quota = 0.5", "sandbox.cpu_quota"},
      {"[sandbox]\nmemory_limit = 16383", "sandbox.memory_limit"},
      {"[sandbox]\nmemory_limit = \"512Mi\"", "sandbox.memory_limit"},
      {"[sandbox]\ndisk_limit = 1", "sandbox.disk_limit"},
      {"[sandbox]\ndisk_limit = 17179869185", "sandbox.disk_limit"},
  };
  for (const Case& c : refused) {
    auto config = parse(c.toml);
    ASSERT_FALSE(config) << c.toml;
    EXPECT_THAT(config.error().message, StartsWith(fmt::format("test.toml:{}: {}: ", c.line, c.key)))
        << c.toml;
    EXPECT_THAT(config.error().message, HasSubstr("; ")) << "no remedy: " << config.error().message;
  }
}

TEST(Config, RegistriesHaveNamesOrAddresses) {
  for (const char* host : {"registry.example", "registry.example:5000", "10.0.0.1:5000", "[::1]:5000"}) {
    auto config =
        parse(fmt::format("[registry]\ndefault = \"{0}\"\nplain_hosts = [\"{0}\"]\nmirrors = {{ "
                          "\"docker.io\" = \"http://{0}\" }}",
                          host));
    EXPECT_TRUE(config) << config.error().message;
  }
  for (const char* host :
       {"", "::1", "[::1", "[::1]:0", "[registry.example]", "http://registry.example", "a/b"}) {
    EXPECT_FALSE(parse(fmt::format("[registry]\ndefault = \"{}\"", host))) << host;
    EXPECT_FALSE(parse(fmt::format("[registry]\nplain_hosts = [\"{}\"]", host))) << host;
  }
}

TEST(Config, VariablesCountWhereTheFileIsSilent) {
  const Variables all = {{"SANDBOX_POOL_SIZE", "3"},
                         {"SANDBOX_CPU_QUOTA", " 150 "},
                         {"SANDBOX_MEMORY_LIMIT", "524288"},
                         {"SANDBOX_ALLOW_NETWORK", "No"}};
  auto config = parse("", all);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->sandbox.pool_size, 3);
  EXPECT_EQ(config->sandbox.pool_image, "host");
  EXPECT_THAT(config->warnings, testing::IsEmpty());
  EXPECT_EQ(parse("[sandbox]\npool_size = 5\npool_limits = { memory = \"2Gi\" }", all)->sandbox.pool_size, 5);
  EXPECT_EQ(config->sandbox.cpu_quota, 150);
  EXPECT_EQ(config->sandbox.memory_limit_kb, 524288);
  EXPECT_EQ(config->sandbox.allow_network, false);
  EXPECT_FALSE(config->sandbox.has_network());
  EXPECT_TRUE(parse("[sandbox]\nallow_network = true", all)->sandbox.has_network()) << "the file wins";
  EXPECT_TRUE(parse("")->sandbox.has_network());
}

TEST(Config, AVariableThatCannotBeReadEndsTheStart) {
  const std::pair<const char*, const char*> refused[] = {
      {"SANDBOX_POOL_SIZE", ""},      {"SANDBOX_POOL_SIZE", "-1"},        {"SANDBOX_POOL_SIZE", "10001"},
      {"SANDBOX_POOL_SIZE", "ten"},   {"SANDBOX_CPU_QUOTA", "-1"},        {"SANDBOX_CPU_QUOTA", "50%"},
      {"SANDBOX_CPU_QUOTA", "1.5"},   {"SANDBOX_CPU_QUOTA", "102401"},    {"SANDBOX_MEMORY_LIMIT", "16383"},
      {"SANDBOX_MEMORY_LIMIT", "1G"}, {"SANDBOX_ALLOW_NETWORK", "maybe"}, {"SANDBOX_ALLOW_NETWORK", ""},
  };
  for (const auto& [name, value] : refused) {
    auto config = parse("", {{name, value}});
    ASSERT_FALSE(config) << name << "=" << value;
    EXPECT_EQ(config.error().code, Code::invalid_argument);
    EXPECT_THAT(config.error().message, StartsWith(fmt::format("environment: {}: must be ", name)));
    EXPECT_THAT(config.error().message, HasSubstr("; correct it, or unset it"));
  }
}

TEST(Config, VariablesOfOtherServersAreWarnedOf) {
  EXPECT_THAT(parse("", {{"SANDBOX_TENANTS_CONFIG_PATH", "/x"}})->warnings,
              testing::ElementsAre(HasSubstr("environment: SANDBOX_TENANTS_CONFIG_PATH: other OpenSandbox")));
  EXPECT_THAT(parse("", {{"OPENSANDBOX_STORE_POSTGRESQL_DSN", "secret"}})->warnings,
              testing::ElementsAre(testing::Not(HasSubstr("secret"))));
  auto half = parse("", {{"OPENSANDBOX_SECURE_ACCESS_KEYS", "a=c2VjcmV0"}});
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message,
              StartsWith("environment: OPENSANDBOX_SECURE_ACCESS_ACTIVE_KEY: is missing"));
  EXPECT_EQ(parse("", {{"OPENSANDBOX_SECURE_ACCESS_KEYS", "a=c2VjcmV0"},
                       {"OPENSANDBOX_SECURE_ACCESS_ACTIVE_KEY", "a"}})
                ->warnings.size(),
            2u);
}

TEST(Config, ALogFile) {
  EXPECT_FALSE(parse("")->log_file.enabled);
  auto config =
      parse("[log]\nfile_enabled = true\nfile_max_bytes = 10\nfile_backup_count = 0", {{"HOME", "/home/u"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->log_file.enabled);
  EXPECT_EQ(config->log_file.path, "/home/u/logs/opensandbox/server.log");
  EXPECT_EQ(config->log_file.max_bytes, 10);
  EXPECT_EQ(config->log_file.backups, 0);
  EXPECT_FALSE(parse("[log]\nfile_enabled = true")) << "nobody's home";
}

TEST(Config, ALifeIsBounded) {
  auto config = parse("[sandbox]\ntimeout_seconds = 60\nmax_lifetime = 3600");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->sandbox.timeout_seconds, 60);
  EXPECT_EQ(config->sandbox.max_lifetime, 3600);
  for (const char* wrong : {"[sandbox]\ntimeout_seconds = 100\nmax_lifetime = 99",
                            "[sandbox]\ntimeout_seconds = 100\n[server]\nmax_sandbox_timeout_seconds = 99"}) {
    auto refused = parse(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message,
                StartsWith("test.toml:2: sandbox.timeout_seconds: must be at most "));
  }
}

TEST(Config, TheWebhookForDenialsIsAnAddress) {
  auto config = parse("[egress]\ndeny_webhook = \"http://hooks.example:8080/denied\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->egress.deny_webhook, "http://hooks.example:8080/denied");
  EXPECT_TRUE(parse("[egress]\ndeny_webhook = \"https://hooks.example/denied\""));
  for (const char* wrong : {"ftp://hooks.example/", "hooks.example", "http://", "https://"}) {
    auto refused = parse(std::string("[egress]\ndeny_webhook = \"") + wrong + "\"");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_THAT(refused.error().message, StartsWith("test.toml:2: egress.deny_webhook: must be an http://"));
  }
}

TEST(Config, Docker) {
  auto config = parse(
      "[runtime]\ntype = \"docker\"\n[docker]\nsocket = \"unix:///run/x.sock\"\nnetwork_mode = \"Mine\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->effective_runtime(), RuntimeType::docker);
  EXPECT_EQ(config->docker.socket, "/run/x.sock");
  EXPECT_EQ(config->docker.network_mode, "Mine");
  EXPECT_TRUE(config->docker.no_new_privileges);
  EXPECT_THAT(config->warnings, testing::IsEmpty());
  config = parse("[docker]\nnetwork_mode = \"host\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->warnings,
              testing::ElementsAre(HasSubstr("docker.network_mode: it has no effect here")));
}

TEST(Config, WhatDockerGivesEveryContainer) {
  auto config = parse(
      "[runtime]\ntype = \"docker\"\n[docker]\nseccomp_profile = \" /etc/p.json \"\nsandbox_binds = "
      "[\"/a:/b:ro\", \"cache:/c\"]\nadopt_metadata = \"/srv/m\"\n[docker.sandbox_env]\nTZ = \"UTC\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->docker.seccomp_profile, "/etc/p.json");
  EXPECT_EQ(config->docker.sandbox_binds, (std::vector<std::string>{"/a:/b:ro", "cache:/c"}));
  EXPECT_EQ(config->docker.sandbox_env.at("TZ"), "UTC");
  EXPECT_EQ(config->docker.adopt_metadata, "/srv/m");
  EXPECT_THAT(config->warnings, testing::IsEmpty());
  config = parse("[runtime]\ntype = \"docker\"\n[docker]\nseccomp_profile = \"unconfined\"");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->warnings, testing::ElementsAre(HasSubstr("every call to the host's kernel")));
}

TEST(Config, AFileThatAsksForLessNetworkIsNotGivenMore) {
  auto refused = parse("[docker]\nnetwork_mode = \"none\"\n[egress]\nenabled = true");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, StartsWith("test.toml:2: docker.network_mode: "));
  refused = parse("[egress]\nenabled = true\n[egress.upstream_proxy]\nurl = \"http://proxy.example\"");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, StartsWith("test.toml:4: egress.upstream_proxy.url: "));
  EXPECT_FALSE(parse("[docker]\nnetwork_mode = \"none\"")->egress.enabled);
  EXPECT_TRUE(parse("[docker]\nnetwork_mode = \"bridge\"\n[egress]\nenabled = true"));
  EXPECT_FALSE(parse("[egress.upstream_proxy]\nurl = \"http://proxy.example\"")->egress.enabled);
  EXPECT_TRUE(parse("[docker]\nnetwork_mode = \"bridge\"")->egress.enabled);
  EXPECT_TRUE(parse("")->egress.enabled);
}

TEST(Config, UnknownNamesAreErrorsWithAPlaceAndAGuess) {
  struct Case {
    const char *toml, *message;
  };
  const Case refused[] = {
      {"[server]\nport = 1\napikey = \"x\"",
       "test.toml:3: unknown key `apikey` in [server]; did you mean `api_key`?"},
      {"\n[sever]\nport = 1", "test.toml:2: unknown section [sever]; did you mean [server]?"},
      {"[server]\nAPI_KEY = \"x\"",
       "test.toml:2: unknown key `API_KEY` in [server]; did you mean `api_key`?"},
      {"[native]\napi_key = \"x\"",
       "test.toml:2: unknown key `api_key` in [native]; it belongs below [server]"},
      {"api_key = \"x\"", "test.toml:1: unknown key `api_key` in no section; it belongs below [server]"},
      {"apikey = \"x\"",
       "test.toml:1: unknown key `apikey` in no section; did you mean `api_key` below [server]?"},
      {"server.apikey = \"x\"", "test.toml:1: unknown key `apikey` in [server]; did you mean `api_key`?"},
      {"server = { apikey = \"x\" }",
       "test.toml:1: unknown key `apikey` in [server]; did you mean `api_key`?"},
      {"[native.image]\nx = \"/x\"",
       "test.toml:1: unknown section [native.image]; did you mean [native.images]?"},
      {"[log]\ncolour = true", "test.toml:2: unknown key `colour` in [log]; the keys there are level"},
      {"[docker]\nnetwork = \"x\"",
       "test.toml:2: unknown key `network` in [docker]; did you mean `network_mode`?"},
      {"[renew_intent]\nredis.dns = \"x\"",
       "test.toml:2: unknown key `dns` in [renew_intent.redis]; did you mean `dsn`?"},
      {"[nobody]\nx = 1", "test.toml:1: unknown section [nobody]; the sections are server, log, runtime"},
      {"[server]\n\"a\\u001bb`\" = 1", "test.toml:2: unknown key `a?b?` in [server]"},
  };
  for (const Case& c : refused) {
    auto config = parse(c.toml);
    ASSERT_FALSE(config) << c.toml;
    EXPECT_EQ(config.error().code, Code::invalid_argument);
    EXPECT_THAT(config.error().message, StartsWith(c.message)) << c.toml;
  }
}

TEST(Config, EveryUnknownNameIsReportedInTheOrderOfTheFile) {
  auto config = parse("[server]\nzzz = 1\naaa = 2\n[log]\nlevl = \"INFO\"");
  ASSERT_FALSE(config);
  const std::string& text = config.error().message;
  EXPECT_LT(text.find("test.toml:2: unknown key `zzz`"), text.find("\ntest.toml:3: unknown key `aaa`"));
  EXPECT_THAT(text, HasSubstr("\ntest.toml:5: unknown key `levl` in [log]; did you mean `level`?"));
  std::string many = "[server]\n";
  for (int i = 0; i < 100; ++i) many += fmt::format("unknown_{} = 1\n", i);
  EXPECT_THAT(parse(many).error().message, HasSubstr("\nand 92 more"));
}

TEST(Config, RedisInBothSpellings) {
  for (const char* toml :
       {"[renew_intent]\nenabled = true\nredis.enabled = true\nredis.dsn = \"redis://:p@h:1/2\"",
        "[renew_intent]\nenabled = true\n[renew_intent.redis]\nenabled = true\ndsn = \"redis://:p@h:1/2\""}) {
    auto config = parse(toml);
    ASSERT_TRUE(config) << config.error().message;
    const RenewRedisSection& redis = config->renew.redis;
    EXPECT_TRUE(redis.enabled);
    EXPECT_EQ(redis.address.host, "h");
    EXPECT_EQ(redis.address.password, "p");
    EXPECT_EQ(redis.queue_key, "opensandbox:renew:intent");
    EXPECT_EQ(redis.consumer_concurrency, 8);
    EXPECT_TRUE(config->warnings.empty());
  }
  auto missing = parse("[renew_intent.redis]\nenabled = true");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("renew_intent.redis.dsn: is missing"));
  auto useless = parse("[renew_intent.redis]\nenabled = true\ndsn = \"redis://h\"");
  ASSERT_TRUE(useless);
  ASSERT_EQ(useless->warnings.size(), 1u);
  EXPECT_THAT(useless->warnings[0], HasSubstr("no effect without renew_intent.enabled"));
}

TEST(Config, TenantsNeedAKeyHere) {
  auto config = parse("[tenants]\nprovider = \"file\"");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("tenants: "));
  EXPECT_TRUE(parse("[tenants]\nprovider = \"file\"", {{"OPENSANDBOX_SERVER_API_KEY", "k"}}));
  EXPECT_TRUE(parse("[secure_runtime]\ntype = \"\""));
}

TEST(Config, TheUsualDatabaseOfOtherServersIsNotTaken) {
  auto config =
      parse("[store]\ntype = \"sqlite\"\npath = \"~/.opensandbox/opensandbox.db\"", {{"HOME", "/root"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->database_path(), "/var/lib/opensandbox/db/opensandbox.db");
  EXPECT_EQ(config->others_store_path, "/root/.opensandbox/opensandbox.db");
  ASSERT_EQ(config->warnings.size(), 1u);
  EXPECT_THAT(config->warnings[0], StartsWith("test.toml:3: store.path: "));
  // In full it is what somebody wants.
  config = parse("[store]\npath = \"/root/.opensandbox/opensandbox.db\"");
  EXPECT_EQ(config->database_path(), "/root/.opensandbox/opensandbox.db");
  EXPECT_THAT(config->warnings, IsEmpty());
}

TEST(Config, BrokenTomlHasAPlace) {
  auto config = parse("[server]\nport = \n");
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("test.toml:2:"));
  for (std::string text : {"[/etc]\nx = 1", "[[=", "[\x01]", "[$x]\ny = 1", "[n\xc2\xb8x]"}) {
    config = parse(text);
    ASSERT_FALSE(config) << text;
    EXPECT_THAT(config.error().message, StartsWith("test.toml:1:")) << text;
  }
}

TEST(Config, MistakesDoNotPrintValues) {
  auto config = parse("[server]\napi_key = [\"hunter2\"]");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message.find("hunter2"), std::string::npos);
}

TEST(Config, TheEnvironmentReplacesTheKey) {
  EXPECT_EQ(parse("[server]\napi_key = \"a\"", {{"OPENSANDBOX_SERVER_API_KEY", "b"}})->server.api_key, "b");
  EXPECT_FALSE(parse("[server]\napi_key = \"a\"", {{"OPENSANDBOX_SERVER_API_KEY", ""}})->has_key());
  EXPECT_FALSE(parse("[server]\napi_key = \"  \"")->has_key());
}

TEST(Config, WhereTheFileIs) {
  FakeEnvironment plain(Variables{{"HOME", "/home/u"}});
  EXPECT_EQ(config_path(std::nullopt, plain), "/home/u/.sandbox.toml");
  FakeEnvironment named(Variables{{"HOME", "/home/u"}, {"SANDBOX_CONFIG_PATH", "~/x.toml"}});
  EXPECT_EQ(config_path(std::nullopt, named), "/home/u/x.toml");
  EXPECT_EQ(config_path("/flag.toml", named), "/flag.toml");
}

TEST(Config, AMissingFileIsTheDefault) {
  auto config = load_config(testing::TempDir() + "no-such-file.toml", FakeEnvironment(Variables{}));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->source, "");
  std::string path = testing::TempDir() + "config_test.toml";
  ASSERT_TRUE(write_file(path, "[server]\nport = 1234\n", O_CREAT | O_TRUNC | O_WRONLY));
  config = load_config(path, FakeEnvironment(Variables{}));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->server.port, 1234);
  EXPECT_FALSE(load_config(testing::TempDir(), FakeEnvironment(Variables{})))
      << "a directory is not a missing file";
}

TEST(Config, Exposure) {
  struct Case {
    const char *host, *key, *insecure;
    bool allowed;
  };
  const Case cases[] = {
      {"127.0.0.1", "", "", true}, {"127.9.9.9", "", "", true},    {"::1", "", "", true},
      {"localhost", "", "", true}, {"0.0.0.0", "", "", false},     {"::", "", "", false},
      {"10.0.0.1", "", "", false}, {"example.com", "", "", false}, {"127.0.0.1.evil.com", "", "", false},
      {"0.0.0.0", "k", "", true},  {"0.0.0.0", "", "YES", true},   {"0.0.0.0", "", "yes", false},
      {"0.0.0.0", "", "1", false}, {"0.0.0.0", " ", "", false},
  };
  for (const Case& c : cases) {
    auto config = parse("[server]\nhost = \"" + std::string(c.host) + "\"\napi_key = \"" + c.key + "\"",
                        {{"OPENSANDBOX_INSECURE_SERVER", c.insecure}});
    ASSERT_TRUE(config);
    EXPECT_EQ(check_exposure(*config).has_value(), c.allowed) << c.host << " " << c.key << " " << c.insecure;
  }
}

}  // namespace
}  // namespace osb::server
