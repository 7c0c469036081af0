#include "runtime/capabilities.h"

#include <algorithm>

namespace osb::runtime {
namespace {

struct Asked {
  std::string_view name;
  const std::optional<int64_t>& value;
  const Ability& ability;
};

}  // namespace

std::vector<NamedAbility> abilities_of(const Capabilities& c) {
  return {{"resourceLimits.cpu", c.cpu},
          {"resourceLimits.memory", c.memory},
          {"resourceLimits.pids", c.pids},
          {"resourceLimits.disk", c.disk},
          {"resourceLimits.io-read", c.io_read},
          {"resourceLimits.io-write", c.io_write},
          {"resourceLimits.nofile", c.open_files},
          {"resourceLimits.gpu", c.gpu},
          {"pause", c.pause},
          {"snapshots", c.snapshots},
          {"pools", c.pools},
          {"volumes", c.volumes},
          {"networkPolicy", c.network_policy},
          {"secureAccess", c.secure_access},
          {"pulling images", c.pull}};
}

std::optional<Obstacle> obstacle(const SandboxSpec& spec, const Capabilities& c) {
  const Limits& l = spec.limits;
  const Asked limits[] = {{"resourceLimits.cpu", l.cpu_millis, c.cpu},
                          {"resourceLimits.memory", l.memory_bytes, c.memory},
                          {"resourceLimits.pids", l.pids, c.pids},
                          {"resourceLimits.io-read", l.io_read_bytes, c.io_read},
                          {"resourceLimits.io-write", l.io_write_bytes, c.io_write},
                          {"resourceLimits.disk", l.disk_bytes, c.disk},
                          {"resourceLimits.nofile", l.open_files, c.open_files},
                          {"resourceLimits.gpu", l.gpus, c.gpu}};
  for (const Asked& limit : limits) {
    if (!limit.value) continue;
    if (!limit.ability) return Obstacle{std::string(limit.name), limit.ability.why, true};
    if (limit.ability.most && *limit.value > *limit.ability.most) {
      return Obstacle{std::string(limit.name),
                      "must be at most " + std::to_string(*limit.ability.most) + ", " + limit.ability.why,
                      true};
    }
  }
  if (!spec.image.platform.empty() &&
      std::ranges::find(c.platforms, spec.image.platform) == c.platforms.end())
    return Obstacle{"platform", "this runtime has no " + spec.image.platform};
  if (!spec.mounts.empty() && !c.volumes) return Obstacle{"volumes", c.volumes.why};
  if (spec.network && !c.network_policy) return Obstacle{"networkPolicy", c.network_policy.why};
  if (spec.image.pull == ImageRequest::Pull::always && !c.pull) return Obstacle{"image", c.pull.why};
  return std::nullopt;
}

std::string to_text(const Capabilities& capabilities) {
  std::string can, rest;
  for (const auto& [name, ability] : abilities_of(capabilities)) {
    if (ability.kind == Ability::Kind::yes) {
      can.append(can.empty() ? "" : ", ").append(name);
      if (ability.most) can.append(" up to ").append(std::to_string(*ability.most));
    } else {
      rest.append(ability.kind == Ability::Kind::no ? "cannot: " : "without effect: ");
      rest.append(name).append(": ").append(ability.why).append("\n");
    }
  }
  std::string platforms;
  for (const std::string& platform : capabilities.platforms)
    platforms.append(platforms.empty() ? "" : ", ").append(platform);
  return "can: " + can + "\nplatforms: " + platforms + "\n" + rest;
}

}  // namespace osb::runtime
