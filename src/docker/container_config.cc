#include "docker/container_config.h"

#include <boost/json.hpp>

#include "docker/sandbox_files.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

namespace bj = boost::json;

constexpr std::string_view kOurs = "opensandbox.io/";
constexpr int64_t kNanosPerMilli = 1'000'000;

bj::object labels_of(const runtime::SandboxSpec& spec, const std::string& owner) {
  bj::object out;
  for (const auto& [name, value] : spec.labels) {
    if (!name.starts_with(kOurs)) out[name] = value;
  }
  out[kOwnerLabel] = owner;
  out[kHandleLabel] = spec.handle;
  return out;
}

bj::array security_of(const ContainerRules& rules) {
  bj::array out;
  if (rules.no_new_privileges) out.emplace_back("no-new-privileges:true");
  if (!rules.apparmor_profile.empty()) out.emplace_back("apparmor=" + rules.apparmor_profile);
  return out;
}

}  // namespace

std::string container_name(const std::string& handle) { return "sandbox-" + handle; }

std::string container_body(const runtime::SandboxSpec& spec, const std::string& image_id,
                           const std::string& owner, const std::string& boot, const ContainerRules& rules) {
  bj::array drop(rules.drop_capabilities.begin(), rules.drop_capabilities.end());
  bj::object host{
      {"NetworkMode", rules.network_mode},
      {"Mounts", bj::array{bj::object{
                     {"Type", "bind"}, {"Source", boot}, {"Target", kBootInside}, {"ReadOnly", true}}}},
      {"SecurityOpt", security_of(rules)},
      {"CapDrop", std::move(drop)},
      {"RestartPolicy", bj::object{{"Name", "no"}}},
      // execd's own words; what the entry process writes is kept by execd.
      {"LogConfig",
       bj::object{{"Type", "json-file"}, {"Config", bj::object{{"max-size", "256k"}, {"max-file", "1"}}}}}};
  const auto& limits = spec.limits;
  if (limits.cpu_millis) host["NanoCpus"] = *limits.cpu_millis * kNanosPerMilli;
  if (limits.memory_bytes) {
    host["Memory"] = *limits.memory_bytes;
    host["MemorySwap"] = *limits.memory_bytes;  // with it: no swap besides
  }
  if (limits.pids) host["PidsLimit"] = *limits.pids;
  if (spec.shm_bytes) host["ShmSize"] = *spec.shm_bytes;
  if (spec.read_only_root) {
    host["ReadonlyRootfs"] = true;
    host["Tmpfs"] = bj::object{{"/tmp", "mode=1777"}, {"/run", "mode=755"}};
  }
  std::string inside = kBootInside;
  return json::print(bj::object{{"Image", image_id},
                                {"Entrypoint", bj::array{inside + "/execd"}},
                                {"Cmd", bj::array{"--container=" + inside + "/hub", "--log-level=4"}},
                                {"Labels", labels_of(spec, owner)},
                                {"HostConfig", std::move(host)}});
}

}  // namespace osb::docker
