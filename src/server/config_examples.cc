#include "server/config_examples.h"

#include <array>
#include <utility>

namespace osb::server {
namespace {

constexpr std::string_view kNative =
    R"toml(# OpenSandbox on the native runtime: needs nothing but this host's kernel.

[server]
host = "127.0.0.1"
port = 8080
# A key is needed before the server may listen on anything but loopback. Clients send it as OPEN-SANDBOX-API-KEY.
# api_key = "change-me"
# The name under which clients reach the server, when it is not the one they call it by.
# eip = "sandboxes.example.com"
# max_sandbox_timeout_seconds = 86400

[log]
level = "INFO"

[runtime]
type = "native"

[native]
state_dir = "/var/lib/opensandbox"
user = "opensandbox"
pids_limit = 4096
# More paths of this host that sandboxes of the image "host" see, read-only.
host_paths = []

[native.images]
# The image "host" always exists: this host's /usr, and nothing else of it. More images are unpacked root directories:
# python = "/srv/images/python"
# or come from `osb images import`, which needs no entry here and no restart.

[native.image_aliases]
# What clients ask for, '*' allowed, and the local image that serves it:
# "python:*" = "python"
)toml";

constexpr std::string_view kDocker =
    R"toml(# OpenSandbox, written for the Docker runtime. As it is, the native runtime serves: see runtime.fallback.

[server]
host = "127.0.0.1"
port = 8080
# api_key = "change-me"
# eip = ""
# max_sandbox_timeout_seconds = 86400

[log]
level = "INFO"

[runtime]
type = "docker"
# Without this line sandboxes are containers of the Docker engine of this host.
fallback = "native"
execd_image = "registry.example/opensandbox/execd:v1.1.0"

[docker]
network_mode = "bridge"
drop_capabilities = ["AUDIT_WRITE", "MKNOD", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_TIME", "SYS_TTY_CONFIG"]
no_new_privileges = true
pids_limit = 4096

[egress]
image = "registry.example/opensandbox/egress:v1.1.7"
mode = "dns"

[storage]
# Host directories that sandboxes may mount. An empty list refuses every host mount.
allowed_host_paths = []

[store]
type = "sqlite"
)toml";

constexpr std::string_view kDockerZh =
    R"toml(# OpenSandbox 配置示例（Docker 运行时）。本程序会改用 native 运行时，见 runtime.fallback。

[server]
host = "127.0.0.1"
port = 8080
# 监听非本机地址之前必须设置密钥；客户端用 OPEN-SANDBOX-API-KEY 请求头发送。
# api_key = "change-me"
# eip = ""
# max_sandbox_timeout_seconds = 86400

[log]
level = "INFO"

[runtime]
type = "docker"
# 没有这一行时，沙箱将由本机的 Docker 引擎以容器方式运行。
fallback = "native"
execd_image = "registry.example/opensandbox/execd:v1.1.0"

[docker]
network_mode = "bridge"
drop_capabilities = ["AUDIT_WRITE", "MKNOD", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_TIME", "SYS_TTY_CONFIG"]
no_new_privileges = true
pids_limit = 4096

[egress]
image = "registry.example/opensandbox/egress:v1.1.7"
mode = "dns"

[storage]
# 沙箱可以挂载的宿主机目录；空列表表示拒绝所有宿主机挂载。
allowed_host_paths = []

[store]
type = "sqlite"
)toml";

constexpr std::string_view kKubernetes =
    R"toml(# OpenSandbox, written for the Kubernetes runtime. This build runs it on the native runtime: see runtime.fallback.

[server]
host = "0.0.0.0"
port = 8080
# Needed, since the server listens on all addresses. OPENSANDBOX_SERVER_API_KEY in the environment replaces it.
api_key = "change-me"

[log]
level = "INFO"

[runtime]
type = "kubernetes"
# Without this line the server refuses to start where the Kubernetes runtime is not built.
fallback = "native"
execd_image = "registry.example/opensandbox/execd:v1.1.0"

[kubernetes]
kubeconfig_path = ""
namespace = "opensandbox"
workload_provider = "batchsandbox"
image_pull_policy = "IfNotPresent"
sandbox_create_timeout_seconds = 60

[ingress]
mode = "direct"

[egress]
image = "registry.example/opensandbox/egress:v1.1.7"
mode = "dns"

[storage]
allowed_host_paths = []
volume_default_size = "1Gi"

[store]
type = "sqlite"
)toml";

constexpr std::string_view kKubernetesZh =
    R"toml(# OpenSandbox 配置示例（Kubernetes 运行时）。本程序会改用 native 运行时，见 runtime.fallback。

[server]
host = "0.0.0.0"
port = 8080
# 服务监听所有地址，因此必须设置密钥；环境变量 OPENSANDBOX_SERVER_API_KEY 会覆盖它。
api_key = "change-me"

[log]
level = "INFO"

[runtime]
type = "kubernetes"
# 没有这一行时，若未内置 Kubernetes 运行时，服务将拒绝启动。
fallback = "native"
execd_image = "registry.example/opensandbox/execd:v1.1.0"

[kubernetes]
kubeconfig_path = ""
namespace = "opensandbox"
workload_provider = "batchsandbox"
image_pull_policy = "IfNotPresent"
sandbox_create_timeout_seconds = 60

[ingress]
mode = "direct"

[egress]
image = "registry.example/opensandbox/egress:v1.1.7"
mode = "dns"

[storage]
allowed_host_paths = []
volume_default_size = "1Gi"

[store]
type = "sqlite"
)toml";

constexpr std::string_view kSkeleton =
    R"toml(# OpenSandbox: every key that this server reads, with its default. Remove the '#' to change one.

[server]
# Address to listen on. Anything but loopback needs api_key.
# host = "127.0.0.1"
# port = 8080
# The key that clients must send as OPEN-SANDBOX-API-KEY. OPENSANDBOX_SERVER_API_KEY replaces it.
# api_key = ""
# Name (and path) under which clients reach the server, for the endpoints it hands out.
# eip = ""
# Longest timeout a client may ask for, in seconds, at least 60. Not set: no limit.
# max_sandbox_timeout_seconds = 86400
# Seconds after which an idle connection is closed.
# timeout_keep_alive = 150
# Seconds that running requests get when the server stops.
# timeout_graceful_shutdown = 5
# Creates and changes in progress, those in line included; looks and deletes are never counted. 0 means no limit.
# limit_concurrency = 1024
# Connections that may wait to be accepted.
# backlog = 2048
# Connections of clients; when all are taken, idle ones make room. Fewer where the process may not have two descriptors for each.
# max_connections = 16384
# Web pages that may call the API, such as "https://console.example.com". With a key, an empty list means all.
# cors_origins = []
# Proxies in front of this server, by address or range: what these say in X-Forwarded-For, -Host and -Proto is believed, and
# nobody else.
# trusted_proxies = []

[log]
# DEBUG, INFO, WARNING or ERROR.
# level = "INFO"
# true: the log goes to a file, and not to standard error.
# file_enabled = false
# Its directory is made when it is missing.
# file_path = "~/logs/opensandbox/server.log"
# A file that would grow beyond this becomes NAME.1, and the one before it NAME.2.
# file_max_bytes = 104857600
# How many of those are kept. 0: a full file begins anew.
# file_backup_count = 5

[runtime]
# native, docker or kubernetes.
# type = "native"
# "native" lets a file written for another runtime run on the native one.
# fallback = ""
# Further runtimes that a create may name: native, docker, runsc.
# also = []
# Which runtime a create gets that names none, by its image, the first that fits (docs/secure-runtimes.md).
# rules = []

[secure_runtime]
# gvisor: every sandbox has a kernel of its own; kata: on the docker runtime only.
# type = ""
# What the engine starts containers with, where the runtime is docker.
# docker_runtime = ""
# k8s_runtime_class = ""
# gVisor's executable, for the native runtime; empty: looked for in the usual places.
# runsc = ""
# systrap or ptrace; empty: the first that works.
# platform = ""

[docker]
# The engine's socket. The server gets the socket's group, unless that is root's.
# socket = "/var/run/docker.sock"
# Instead of it: tcp://ADDRESS:PORT, or unix:///PATH. Without socket and host the variables DOCKER_HOST,
# DOCKER_TLS_VERIFY and DOCKER_CERT_PATH count.
# host = ""
# TLS: who has signed the engine's certificate, and the certificate and key of this server. Root reads these files once,
# when the service starts. Without them only an engine on 127.0.0.1 is spoken to.
# tls_ca = ""
# tls_cert = ""
# tls_key = ""
# The engine is on another host, or does not see this one's files. Without this line: when host names an address that
# is not loopback, or when a create shows that it does not see them.
# remote = false
# The network of containers: bridge, none, or the name of one that the engine has.
# network_mode = "bridge"
# Seconds that the engine may take to make or change something.
# api_timeout = 180
# drop_capabilities = ["AUDIT_WRITE", "MKNOD", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_TIME", "SYS_TTY_CONFIG"]
# Empty: the engine's own.
# apparmor_profile = ""
# A file with a profile for system calls, which root reads when the service starts, or "unconfined".
# seccomp_profile = ""
# Mounts of every container, as an engine writes them: "/srv/data:/data:ro".
# sandbox_binds = []
# no_new_privileges = true
# Processes per container.
# pids_limit = 4096
# Publishes the ports 44772 and 8080 of every container, for endpoints that go past this server. Whoever
# reaches them may do everything in the container: there is no token.
# direct = false
# With direct: the address of this host on which they are published, and from which of its ports (0: any).
# publish_host = "127.0.0.1"
# port_range_min = 0
# port_range_max = 0
# With direct, where the server itself runs in a container: the host's address, for endpoints.
# host_ip = ""
# Named volumes of the engine that others have made may be mounted by who has the server's own key.
# foreign_volumes = true
# Takes containers of the original server over when the service starts.
# adopt = false
# Where that server kept metadata and expiries that it has changed. Root reads it when the service starts.
# adopt_metadata = "~/.opensandbox/metadata"

[docker.sandbox_env]
# Variables of every container, unless the request has another value.
# TZ = "UTC"

[native]
# Where images, sandboxes and the state database live. A service that an ordinary user starts without this key
# uses ~/.local/state/opensandbox. One that does not exist yet, an empty one, or one of this service.
# state_dir = "/var/lib/opensandbox"
# The account that the server runs as. It has to exist, but for the default: then a number that nobody has
# serves. Give each service of a host its own: servers of one account can reach each other's files.
# user = "opensandbox"
# Processes per sandbox.
# pids_limit = 4096
# More paths of this host that sandboxes of the image "host" see, read-only.
# host_paths = []

[native.images]
# Image names and their unpacked root directories. `osb images import` needs no entry here.
# python = "/srv/images/python"

[native.image_aliases]
# What clients ask for, '*' allowed, and the local image that serves it.
# "python:*" = "python"

[registry]
# Where an image comes from whose name begins with no host: "python:3.12".
# default = "docker.io"
# When a registry is asked: "if-not-present", "always" (also for what is here and came from one), or "never", which no
# request can change. Names of this host's own images always come first.
# pull_policy = "if-not-present"
# Registries that may be spoken to without TLS, with their ports. Those on loopback always may.
# plain_hosts = []
# Files with certificates (PEM) that are believed besides those of the system.
# ca_files = []
# The file in which `docker login` keeps passwords. Whoever may create sandboxes may then use its images.
# auth_file = ""
# What images may take on the disk. Above it, pulled images that no sandbox uses go, the oldest first. 0: any number.
# disk_budget_gb = 0

[registry.mirrors]
# Who is asked before a registry:
# "docker.io" = "https://mirror.example"

[proxy]
# true: the id of a sandbox opens its ports and runs commands in it, on a server with a key too. Otherwise such a server
# demands the token of the endpoint that it handed out, or the key.
# open = false
# Requests and streams through the proxy to one sandbox at the same time; more get 503. 0 means no limit.
# max_in_flight_per_sandbox = 4096
# The domain below which every port of a sandbox has a host name of its own, for browsers. Names below localhost lead to
# the browser's own machine; any other domain needs a DNS record for *.domain that leads here. "" means no previews.
# preview_domain = "localhost"

[renew_intent]
# true: a sandbox that was made with the extension access.renew.extend.seconds is renewed when its ports are used.
# enabled = false
# Seconds between two such renewals of one sandbox.
# min_interval_seconds = 60

[renew_intent.redis]
# true: uses that gateways have pushed into a list of Redis count, too.
# enabled = false
# Where Redis is: redis://user:password@host:6379/0. Without TLS.
# dsn = "redis://127.0.0.1:6379/0"
# The list.
# queue_key = "opensandbox:renew:intent"
# Connections that take from it, 1 to 64.
# consumer_concurrency = 8

[sandbox]
# false: a sandbox whose request has no networkPolicy reaches nothing. Otherwise it reaches the public internet, and
# nothing private.
# allow_network = true
# How large /dev/shm may become, where a request does not say it (extensions["opensandbox.extensions.shm-size"]). It is memory of
# the sandbox. Not set: half of the sandbox's memory limit, or "1Gi" without one.
# shm_size = ""
# Seconds that a sandbox lives whose request names no timeout, at least 60. Not set: until somebody deletes it.
# timeout_seconds = 3600
# Seconds after its creation at which every sandbox ends, however often it was renewed, at least 60. Not set: no limit.
# max_lifetime = 86400
# What a sandbox may use whose request does not say: percent of one core (150 is one and a half), memory and disk in KiB. 0 means
# no limit. A disk of its own size makes a create slower.
# cpu_quota = 0
# memory_limit = 0
# disk_limit = 0
# How many sandboxes run and wait for creates that ask for no more than pool_image and [sandbox.pool_limits] give
# (docs/pools.md). 0: none.
# pool_size = 0
# pool_image = "host"

[sandbox.pool_limits]
# The resourceLimits of those, as their requests write them:
# memory = "2Gi"

[storage]
# Directories of this host that requests may mount in sandboxes, or what lies below (docs/volumes.md). None: no such volume.
# allowed_host_paths = []

[egress]
# false: sandboxes have no network, and a request with a networkPolicy is refused. Otherwise they have one, through a process
# that looks at their policies (docs/network.md).
# enabled = true
# With a Docker engine on another host: the image of the container that polices one that has a networkPolicy.
# image = ""
# Who answers the lookups of sandboxes, by address; a port may follow. Not set: the host's name servers.
# name_servers = []
# What no sandbox reaches and what every sandbox reaches, whatever its own policy says: host names, "*.example.com",
# addresses, ranges like "10.0.0.0/8". A denial counts before a permission.
# deny_always = []
# allow_always = []
# Who is told of lookups that a policy denied: a POST of {"hostname", "timestamp", "source", "sandboxId"} each. Only http://.
# deny_webhook = "http://hooks.example:8080/denied"

[store]
# type = "sqlite"
# The state database, where the account may write. Not set: below native.state_dir.
# path = ""
)toml";

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kExamples = {{
    {"native", kNative},
    {"docker", kDocker},
    {"docker-zh", kDockerZh},
    {"k8s", kKubernetes},
    {"k8s-zh", kKubernetesZh},
}};

}  // namespace

std::vector<std::string_view> config_example_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : kExamples) names.push_back(name);
  return names;
}

Result<std::string_view> config_example(std::string_view name) {
  if (name.empty()) return kSkeleton;
  std::string names;
  for (const auto& [known, text] : kExamples) {
    if (known == name) return text;
    names.append(names.empty() ? "" : ", ").append(known);
  }
  return fail(Code::invalid_argument,
              "there is no example '" + std::string(name) + "'; the examples are " + names);
}

}  // namespace osb::server
