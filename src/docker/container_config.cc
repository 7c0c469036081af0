#include "docker/container_config.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/limit_bounds.h"
#include "docker/sandbox_files.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

namespace bj = boost::json;

constexpr int64_t kCpuPeriodMicros = 100'000;

bj::object json_of(const Labels& labels) {
  bj::object out;
  for (const auto& [name, value] : labels) out[name] = value;
  return out;
}

std::vector<std::string> volumes_of(const std::vector<ContainerMount>& mounts) {
  std::vector<std::string> out;
  for (const ContainerMount& mount : mounts) {
    if (mount.kind == ContainerMount::Kind::volume) out.push_back(mount.source);
  }
  return out;
}

// What a native sandbox has, too. An engine's own 64 MiB are too little for browsers and databases.
int64_t shm_of(const runtime::SandboxSpec& spec) {
  constexpr int64_t kStandard = int64_t{1} << 30;
  if (spec.shm_bytes) return *spec.shm_bytes;
  if (!spec.limits.memory_bytes) return kStandard;
  return std::clamp(*spec.limits.memory_bytes / 2, limit_bounds::kMinShmBytes, limit_bounds::kMostShmBytes);
}

bj::array mounts_of(const std::string& boot, const std::vector<ContainerMount>& mounts) {
  bj::array out{bj::object{{"Type", "bind"}, {"Source", boot}, {"Target", kBootInside}, {"ReadOnly", true}}};
  for (const ContainerMount& mount : mounts) {
    bool is_volume = mount.kind == ContainerMount::Kind::volume;
    bj::object one{{"Type", is_volume ? "volume" : "bind"},
                   {"Source", mount.source},
                   {"Target", mount.target},
                   {"ReadOnly", mount.read_only}};
    if (is_volume) {
      bj::object options;
      bj::object labels;
      for (const auto& [name, value] : mount.labels) labels[name] = value;
      options["Labels"] = std::move(labels);
      if (!mount.sub_path.empty()) options["Subpath"] = mount.sub_path;
      one["VolumeOptions"] = std::move(options);
    }
    out.push_back(std::move(one));
  }
  return out;
}

bj::array security_of(const ContainerRules& rules) {
  bj::array out;
  if (rules.no_new_privileges) out.emplace_back("no-new-privileges=true");
  if (!rules.apparmor_profile.empty()) out.emplace_back("apparmor=" + rules.apparmor_profile);
  if (!rules.seccomp_profile.empty()) out.emplace_back("seccomp=" + rules.seccomp_profile);
  return out;
}

// Files: execd serves all that runs in the container and needs more than one of its programs, to which it
// gives the limit. The engine's own may be too low for what was asked for.
void add_devices(const runtime::Limits& limits, bj::object& host) {
  constexpr int64_t kForExecd = 4096;
  if (limits.open_files) {
    int64_t files = std::max(*limits.open_files, kForExecd);
    host["Ulimits"] = bj::array{bj::object{{"Name", "nofile"}, {"Soft", files}, {"Hard", files}}};
  }
  if (limits.disk_bytes) host["StorageOpt"] = bj::object{{"size", std::to_string(*limits.disk_bytes)}};
  if (limits.gpus) {
    bj::array any;  // of lists that have to be there together
    any.push_back(bj::array{"gpu"});
    host["DeviceRequests"] = bj::array{bj::object{{"Count", *limits.gpus}, {"Capabilities", std::move(any)}}};
  }
}

// The engine chooses: whatever was free when somebody looked may be taken by now.
bj::object bindings_of(const ContainerRules::Publish& publish) {
  bj::object out;
  for (uint16_t port : kPublished)
    out[std::to_string(port) + "/tcp"] =
        bj::array{bj::object{{"HostIp", publish.host}, {"HostPort", publish.ports}}};
  return out;
}

}  // namespace

std::string container_body(const runtime::SandboxSpec& spec, const Image& image, const std::string& owner,
                           const std::string& boot, const ContainerRules& rules,
                           const std::vector<ContainerMount>& mounts) {
  bj::array drop(rules.drop_capabilities.begin(), rules.drop_capabilities.end());
  bj::object host{{"NetworkMode", spec.network ? "none" : rules.network_mode},
                  {"Mounts", mounts_of(boot, mounts)},
                  {"SecurityOpt", security_of(rules)},
                  {"CapDrop", std::move(drop)},
                  {"RestartPolicy", bj::object{{"Name", "no"}}},
                  // execd's own words; what the entry process writes is kept by execd.
                  {"LogConfig", bj::object{{"Type", "json-file"},
                                           {"Config", bj::object{{"max-size", "256k"}, {"max-file", "1"}}}}}};
  if (!rules.binds.empty()) host["Binds"] = bj::array(rules.binds.begin(), rules.binds.end());
  if (!rules.oci_runtime.empty()) host["Runtime"] = rules.oci_runtime;
  // Whoever is asked, the egress process answers; one on another loopback address would be the container's
  // own.
  if (spec.network) host["Dns"] = bj::array{"127.0.0.1"};
  const auto& limits = spec.limits;
  if (limits.cpu_millis) {
    // Not NanoCpus: engines refuse more of them than the host has processors.
    host["CpuPeriod"] = kCpuPeriodMicros;
    host["CpuQuota"] = *limits.cpu_millis * kCpuPeriodMicros / 1000;
  }
  if (limits.memory_bytes) {
    host["Memory"] = *limits.memory_bytes;
    host["MemorySwap"] = *limits.memory_bytes;  // with it: no swap besides
  }
  if (limits.pids) host["PidsLimit"] = *limits.pids;
  add_devices(limits, host);
  host["ShmSize"] = shm_of(spec);
  if (spec.read_only_root) {
    host["ReadonlyRootfs"] = true;
    host["Tmpfs"] = bj::object{{"/tmp", "mode=1777"}, {"/run", "mode=755"}};
  }
  std::string inside = kBootInside;
  bj::array words{rules.by_network() ? "--secret=" + inside + "/secret" : "--container=" + inside + "/hub",
                  "--log-level=4"};
  if (limits.open_files) words.emplace_back("--work-open-files=" + std::to_string(*limits.open_files));
  // One with a policy has no network of the engine's, and nothing to publish.
  bool publishes = rules.publish && !spec.network;
  bj::object exposed;
  if (publishes) {
    words.emplace_back("--open-port=" + std::to_string(kPublished[0]));
    host["PortBindings"] = bindings_of(*rules.publish);
    for (const auto& port : host["PortBindings"].as_object()) exposed[port.key()] = bj::object();
  }
  for (const ContainerMount& mount : mounts) {
    if (mount.kind == ContainerMount::Kind::host_path) words.emplace_back("--shown=" + mount.target);
  }
  bj::object body{{"Image", image.id},
                  {"Entrypoint", bj::array{inside + "/execd"}},
                  {"Cmd", std::move(words)},
                  // An image's own would run beside execd, and before it.
                  {"Healthcheck", bj::object{{"Test", bj::array{"NONE"}}}},
                  {"Labels", json_of(labels_of(spec, owner, image.labels, volumes_of(mounts)))},
                  {"HostConfig", std::move(host)}};
  if (publishes) body["ExposedPorts"] = std::move(exposed);
  return json::print(body);
}

// An engine adds the container's own labels to these, and cannot take one away.
std::string commit_body(const std::map<std::string, std::string>& labels, const std::string& owner,
                        const std::string& snapshot) {
  bj::object out;
  for (const auto& [name, value] : labels) out[name] = "";
  out[kSnapshotOwnerLabel] = owner;
  out[kSnapshotLabel] = snapshot;
  return json::print(bj::object{{"Labels", std::move(out)}});
}

}  // namespace osb::docker
