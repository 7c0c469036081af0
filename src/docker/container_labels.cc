#include "docker/container_labels.h"

#include <boost/json.hpp>

#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr std::string_view kOurs = "opensandbox.io/";

// Microseconds always, and an offset instead of Z: as other servers write and read it.
std::string moment(WallTime time) {
  std::string text = format_time(time, 6);
  text.pop_back();
  return text + "+00:00";
}

void add_life(const runtime::Life& life, Labels& out) {
  if (life.expires)
    out[kExpiresLabel] = moment(*life.expires);
  else
    out[kManualLabel] = "true";
  if (!life.renewal.empty()) out[kRenewLabel] = life.renewal;
  for (const auto& [name, value] : life.extensions) out[kExtensionLabels + name] = value;
}

}  // namespace

Labels labels_of(const runtime::SandboxSpec& spec, const std::string& owner, const Labels& of_image,
                 const std::vector<std::string>& volumes) {
  Labels out;
  for (const auto& [name, value] : of_image) {
    if (name.starts_with(kOurs)) out[name] = "";
  }
  for (const auto& [name, value] : spec.labels) {
    if (!name.starts_with(kOurs)) out[name] = value;
  }
  out[kOwnerLabel] = owner;
  out[kHandleLabel] = spec.handle;
  if (!spec.id.empty()) out[kIdLabel] = spec.id;
  if (spec.life) add_life(*spec.life, out);
  if (size_t slash = spec.image.platform.find('/'); slash != std::string::npos) {
    out[kOsLabel] = spec.image.platform.substr(0, slash);
    out[kArchLabel] = spec.image.platform.substr(slash + 1);
  }
  auto snapshot = of_image.find(kSnapshotLabel);
  if (!spec.image.id.empty() && snapshot != of_image.end()) out[kSnapshotLabel] = snapshot->second;
  boost::json::array names(volumes.begin(), volumes.end());
  out[kVolumesLabel] = json::print(names);
  out[kEgressLabel] = spec.network ? kWithPolicy : "none";
  return out;
}

std::vector<std::string> volumes_in(const Labels& labels) {
  auto found = labels.find(kVolumesLabel);
  if (found == labels.end()) return {};
  auto value = json::parse(found->second);
  json::Issues issues;
  if (!value || !value->is_array()) return {};
  return json::Field::root(*value, issues, "label").string_list().value_or(std::vector<std::string>());
}

std::string container_name(const std::string& id) { return "sandbox-" + id; }

std::string holder_name(const std::string& handle) { return "opensandbox-volumes-" + handle; }

std::string sidecar_name(const std::string& id) { return "sandbox-egress-" + id; }

std::string second_name(const std::string& name, const std::string& handle) {
  constexpr size_t kDigits = 8;
  return name + "-" + handle.substr(0, kDigits);
}

}  // namespace osb::docker
