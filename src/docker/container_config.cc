#include "docker/container_config.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/default_path.h"
#include "base/limit_bounds.h"
#include "base/shown.h"
#include "base/strings.h"
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
    if (!mount.volume.empty()) out.push_back(mount.volume);
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

// Without a copy of what the image has there: that would be in the volume from then on.
bj::object boot_volume_mount(const std::string& volume, const std::string& target, bool read_only) {
  return {{"Type", "volume"},
          {"Source", volume},
          {"Target", target},
          {"ReadOnly", read_only},
          {"VolumeOptions", bj::object{{"NoCopy", true}}}};
}

bj::array mounts_of(bj::object boot, const std::vector<ContainerMount>& mounts) {
  bj::array out{std::move(boot)};
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

// execd's own words; what the entry process writes is kept by execd.
bj::object short_log() {
  return {{"Type", "json-file"}, {"Config", bj::object{{"max-size", "256k"}, {"max-file", "1"}}}};
}

std::string network_of(const runtime::SandboxSpec& spec, const ContainerRules& rules) {
  if (!spec.network) return rules.network_mode;
  return rules.remote ? "container:" + rules.sidecar : "none";
}

// What changes packet rules, and what sends past them, are not for who is policed.
bj::array dropped(const ContainerRules& rules, bool policed) {
  std::vector<std::string> names = rules.drop_capabilities;
  for (const char* name : {"NET_ADMIN", "NET_RAW"}) {
    if (policed && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  }
  return bj::array(names.begin(), names.end());
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

// As other tools show it. Engines refuse more of these than they have processors; a quota is the same.
void add_cpu(bj::object& host, int64_t millis, int64_t processors) {
  if (millis <= processors * 1000) {
    host["NanoCpus"] = millis * 1'000'000;
    return;
  }
  host["CpuPeriod"] = kCpuPeriodMicros;
  host["CpuQuota"] = millis * kCpuPeriodMicros / 1000;
}

void add_limits(bj::object& host, const sandbox::Limits& limits, int64_t processors) {
  if (limits.cpu_millis) add_cpu(host, *limits.cpu_millis, processors);
  if (limits.memory_bytes) {
    host["Memory"] = *limits.memory_bytes;
    host["MemorySwap"] = *limits.memory_bytes;  // with it: no swap besides
  }
  if (limits.pids) host["PidsLimit"] = *limits.pids;
}

// Of one that execd does not listen to by itself; 0: none, or nothing that anybody could hear. Numbers are
// the same on the machines that there is an execd for.
int further_stop_signal(std::string_view text) {
  constexpr int kFirst = 34, kLast = 64;  // of those without names, as engines count them
  static constexpr std::pair<std::string_view, int> kNames[] = {{"HUP", 1},   {"USR1", 10},  {"USR2", 12},
                                                                {"ALRM", 14}, {"WINCH", 28}, {"PWR", 30}};
  std::string name;
  for (char c : text) name.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  if (name.starts_with("SIG")) name.erase(0, 3);
  std::optional<int> number = parse_number<int>(name);
  if (name == "RTMIN") number = kFirst;
  if (name == "RTMAX") number = kLast;
  if (name.starts_with("RTMIN+")) number = kFirst + parse_number<uint8_t>(name.substr(6)).value_or(UINT8_MAX);
  if (name.starts_with("RTMAX-")) number = kLast - parse_number<uint8_t>(name.substr(6)).value_or(UINT8_MAX);
  for (const auto& [known, value] : kNames) {
    if (name == known) number = value;
  }
  bool named = number && std::ranges::any_of(kNames, [&](const auto& one) { return one.second == *number; });
  return named || (number && *number >= kFirst && *number <= kLast) ? *number : 0;
}

// execd's, behind its name.
bj::array words_of(const sandbox::Limits& limits, int stop_signal, const ContainerRules& rules,
                   bool publishes, const std::vector<ContainerMount>& mounts) {
  std::string way = std::string("--container=") + kBootInside + "/hub";
  if (rules.by_network()) way = std::string("--secret=") + kBootInside + "/secret";
  if (rules.remote) way = "--secret=-";
  bj::array words{way, "--log-level=4"};
  if (limits.open_files) words.emplace_back("--work-open-files=" + std::to_string(*limits.open_files));
  if (stop_signal != 0) words.emplace_back("--stop-signal=" + std::to_string(stop_signal));
  if (publishes) words.emplace_back("--open-port=" + std::to_string(kPublished[0]));
  for (const ContainerMount& mount : mounts) {
    if (mount.kind == ContainerMount::Kind::host_path) words.emplace_back("--shown=" + mount.target);
  }
  return words;
}

}  // namespace

bool names_a_network(std::string_view network_mode) {
  static constexpr std::string_view kModes[] = {"bridge",  "default",     "host", "none",
                                                "private", "slirp4netns", "pasta"};
  return std::ranges::find(kModes, network_mode) == std::end(kModes) && !network_mode.contains(':');
}

std::string container_body(const runtime::SandboxSpec& spec, const Image& image, const std::string& owner,
                           const std::string& boot, const ContainerRules& rules,
                           const std::vector<ContainerMount>& mounts) {
  bj::object boot_mount = boot_volume_mount(boot, kBootInside, true);
  if (!rules.remote)
    boot_mount = {{"Type", "bind"}, {"Source", boot}, {"Target", kBootInside}, {"ReadOnly", true}};
  bj::object host{{"NetworkMode", network_of(spec, rules)},
                  {"Mounts", mounts_of(std::move(boot_mount), mounts)},
                  {"SecurityOpt", security_of(rules)},
                  {"CapDrop", dropped(rules, spec.network && rules.remote)},
                  {"RestartPolicy", bj::object{{"Name", "no"}}},
                  {"LogConfig", short_log()}};
  if (!rules.binds.empty()) host["Binds"] = bj::array(rules.binds.begin(), rules.binds.end());
  if (!rules.oci_runtime.empty()) host["Runtime"] = rules.oci_runtime;
  // Whoever is asked, the egress process answers; one on another loopback address would be the container's
  // own.
  if (spec.network && !rules.remote) host["Dns"] = bj::array{"127.0.0.1"};
  // An engine switches it off where it has put no network; what leaves by it goes the same way as the rest.
  if (spec.network && !rules.remote && rules.ipv6)
    host["Sysctls"] = bj::object{{"net.ipv6.conf.all.disable_ipv6", "0"}};
  add_limits(host, spec.limits, rules.processors);
  add_devices(spec.limits, host);
  host["ShmSize"] = shm_of(spec);
  if (spec.read_only_root) {
    host["ReadonlyRootfs"] = true;
    bj::object small{{"/tmp", "mode=1777"}, {"/run", "mode=755"}};
    // An engine would put these over what was asked for.
    for (const ContainerMount& mount : mounts) small.erase(mount.target);
    host["Tmpfs"] = std::move(small);
  }
  // One with a policy has no network of the engine's, and nothing to publish.
  bool publishes = rules.publish && !spec.network;
  bj::object exposed;
  if (publishes) {
    host["PortBindings"] = bindings_of(*rules.publish);
    for (const auto& port : host["PortBindings"].as_object()) exposed[port.key()] = bj::object();
  }
  Labels labels = labels_of(spec, owner, image.labels, volumes_of(mounts));
  labels[kBootLabel] = rules.remote ? boot : "";
  if (std::ranges::any_of(mounts, [](const ContainerMount& mount) { return !mount.volume.empty(); }))
    labels[kHeldLabel] = holder_name(spec.handle);
  bj::object body{
      {"Image", image.name.empty() ? image.id : image.name},
      {"Entrypoint", bj::array{std::string(kBootInside) + "/execd"}},
      {"Cmd", words_of(spec.limits, further_stop_signal(image.stop_signal), rules, publishes, mounts)},
      // An image's own would run beside execd, and before it.
      {"Healthcheck", bj::object{{"Test", bj::array{"NONE"}}}},
      {"Labels", json_of(labels)},
      {"HostConfig", std::move(host)}};
  // Once: what is in there is execd's secret, and its end is the end of it.
  if (rules.remote) body["OpenStdin"] = body["StdinOnce"] = true;
  if (publishes) body["ExposedPorts"] = std::move(exposed);
  return json::print(body);
}

std::string filler_body(const std::string& image_id, const std::string& volume, const std::string& inside,
                        const std::map<std::string, std::string>& labels) {
  bj::object with;
  for (const auto& [name, value] : labels) with[name] = value;
  return json::print(bj::object{
      {"Image", image_id},
      {"Entrypoint", bj::array{inside + "/execd"}},
      {"Labels", std::move(with)},
      {"HostConfig", bj::object{{"NetworkMode", "none"},
                                {"Mounts", bj::array{boot_volume_mount(volume, inside, false)}}}}});
}

std::string sidecar_body(const Sidecar& sidecar, const ContainerRules& rules) {
  bj::object labels{{kOwnerLabel, sidecar.owner}, {kHandleLabel, sidecar.handle}, {kSidecarLabel, sidecar.id},
                    {kVolumesLabel, "[]"},        {kEgressLabel, "none"},         {kBootLabel, ""}};
  bj::object host{{"NetworkMode", rules.network_mode},
                  {"Mounts", bj::array{boot_volume_mount(sidecar.boot, kBootInside, true)}},
                  {"SecurityOpt", bj::array{"no-new-privileges:true"}},
                  {"CapAdd", bj::array{"NET_ADMIN"}},
                  {"RestartPolicy", bj::object{{"Name", "no"}}},
                  {"LogConfig", short_log()}};
  return json::print(bj::object{{"Image", sidecar.image_id},
                                {"Env", bj::array(sidecar.environment.begin(), sidecar.environment.end())},
                                {"Healthcheck", bj::object{{"Test", bj::array{"NONE"}}}},
                                {"Labels", std::move(labels)},
                                {"HostConfig", std::move(host)}});
}

// An engine adds the container's own labels to these, and cannot take one away. A variable without a value is
// taken away from what is made of the image.
std::string commit_body(const std::map<std::string, std::string>& labels,
                        const std::vector<std::string>& variables, const std::string& owner,
                        const std::string& snapshot) {
  bj::object out;
  for (const auto& [name, value] : labels) out[name] = "";
  out[kSnapshotOwnerLabel] = owner;
  out[kSnapshotLabel] = snapshot;
  bj::object body{{"Labels", std::move(out)}};
  if (!variables.empty()) body["Env"] = bj::array(variables.begin(), variables.end());
  return json::print(body);
}

Result<std::vector<std::string>> commit_changes(const std::map<std::string, std::string>& labels,
                                                const std::vector<std::string>& variables,
                                                const std::string& owner, const std::string& snapshot) {
  constexpr std::string_view kOfEveryContainer[] = {"HOME", "TERM", "HOSTNAME", "container"};
  // A line in a name would be another change.
  constexpr std::string_view kWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./-_";
  std::vector<std::string> out;
  for (const auto& [name, value] : labels)
    if (name.find_first_not_of(kWord) == name.npos) out.push_back("LABEL " + name + "=");
  for (const std::string& one : variables) {
    if (one.find_first_not_of(std::string(kWord) + "=:") != one.npos)
      return fail(Code::unsupported,
                  "the container has a variable that Podman cannot keep out of an image: " + shown(one));
    // A change cannot take one away, it leaves an empty one, which is worse than what every container gets.
    if (one == "PATH") {
      out.push_back(std::string("ENV PATH=").append(kDefaultPath));
    } else if (std::ranges::find(kOfEveryContainer, one) == std::end(kOfEveryContainer)) {
      out.push_back("ENV " + one + (one.contains('=') ? "" : "="));
    }
  }
  out.push_back(std::string("LABEL ") + kSnapshotOwnerLabel + "=" + owner);
  out.push_back(std::string("LABEL ") + kSnapshotLabel + "=" + snapshot);
  return out;
}

}  // namespace osb::docker
