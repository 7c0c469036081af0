#include "docker/inherited.h"

#include <signal.h>

#include <algorithm>
#include <array>

#include "base/ids.h"
#include "base/sha256.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr char kManagedLabel[] = "opensandbox.io/volume-managed-by";
constexpr char kEgressTokenLabel[] = "opensandbox.io/egress-auth-token";
constexpr std::string_view kSharedNetwork = "container:";
constexpr std::array<std::string_view, 4> kNotMetadata = {"opensandbox.io/", "org.opencontainers.image.",
                                                          "com.docker.", "desktop.docker."};

bool is_metadata(std::string_view name) {
  return std::ranges::none_of(kNotMetadata,
                              [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string label_of(const Container& container, const char* name) {
  auto found = container.labels.find(name);
  return found == container.labels.end() ? "" : found->second;
}

}  // namespace

bool is_of_others(const std::map<std::string, std::string>& labels) {
  auto found = labels.find(kIdLabel);
  return found != labels.end() && !found->second.empty() && !labels.contains(kOwnerLabel) &&
         !labels.contains(kHandleLabel);
}

std::string handle_of(const std::string& id) {
  if (is_uuid(id)) return id;
  std::string out = to_hex(sha256_digest("sandbox " + id)).substr(0, 32);
  for (size_t dash : {8, 13, 18, 23}) out.insert(dash, "-");
  out[14] = '8';  // the version for what somebody else has defined
  out[19] = 'a';
  return out;
}

runtime::Inherited inherited_from(const Container& container, const Image& of_image) {
  runtime::Inherited out;
  out.id = label_of(container, kIdLabel);
  out.image = container.reference;
  out.entrypoint = container.command;
  out.created = parse_time(container.created).value_or(wall_now());
  std::string os = label_of(container, kOsLabel), arch = label_of(container, kArchLabel);
  if (!os.empty() && !arch.empty()) out.platform = os + "/" + arch;
  // One that says nothing, or nothing that can be read, is left until somebody deletes it.
  if (auto expires = parse_time(label_of(container, kExpiresLabel))) out.expires = *expires;
  for (const auto& [name, value] : container.labels) {
    auto same = of_image.labels.find(name);
    bool baked = same != of_image.labels.end() && same->second == value;
    if (is_metadata(name) && !baked) out.metadata[name] = value;
  }
  for (const std::string& one : container.env) {
    size_t sign = one.find('=');
    if (sign == one.npos || std::ranges::find(of_image.env, one) != of_image.env.end()) continue;
    out.env.emplace_back(one.substr(0, sign), one.substr(sign + 1));
  }
  return out;
}

std::optional<std::string> inherited_egress(const Container& container) {
  auto token = container.labels.find(kEgressTokenLabel);
  if (token != container.labels.end()) return token->second;
  if (container.network_mode.starts_with(kSharedNetwork)) return std::string();
  return std::nullopt;
}

std::vector<std::string> inherited_volumes(const std::map<std::string, std::string>& labels) {
  auto found = labels.find(kManagedLabel);
  if (found == labels.end()) return {};
  auto value = json::parse(found->second);
  json::Issues issues;
  if (!value || !value->is_array()) return {};
  return json::Field::root(*value, issues, "label").string_list().value_or(std::vector<std::string>());
}

runtime::End inherited_end(const Container& container) {
  using Kind = runtime::End::Kind;
  if (container.out_of_memory)
    return {Kind::out_of_memory, SIGKILL, "the container was killed: the memory limit was reached"};
  if (container.status == "created") return {Kind::lost, 0, "the container was never started"};
  return {Kind::exited, container.exit_code,
          "the entry process ended with code " + std::to_string(container.exit_code)};
}

}  // namespace osb::docker
