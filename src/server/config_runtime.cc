#include "server/config_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace osb::server {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"native", "docker", "runsc"};
constexpr size_t kMostRules = 256;
constexpr size_t kMostPattern = 512;

bool is_runtime(std::string_view name) { return std::ranges::find(kNames, name) != kNames.end(); }

std::optional<RuntimeRule> read_rule(const toml::node& node) {
  const toml::table* table = node.as_table();
  if (!table || table->size() != 2) return std::nullopt;
  const toml::node *image = table->get("image"), *runtime = table->get("runtime");
  auto pattern = image ? image->value_exact<std::string>() : std::nullopt;
  auto name = runtime ? runtime->value_exact<std::string>() : std::nullopt;
  if (!pattern || !name || pattern->empty() || pattern->size() > kMostPattern) return std::nullopt;
  // The host of a registry has no capitals in the names that it is compared with.
  size_t host = pattern->find('/') == pattern->npos ? 0 : pattern->find('/');
  if (pattern->substr(0, host).find_first_of(".:") != pattern->npos)
    pattern = to_lower(pattern->substr(0, host)) + pattern->substr(host);
  return RuntimeRule{*pattern, *name};
}

// In order: the first that fits counts, so no table of patterns would do.
void read_rules(ConfigFile& file, Section& in, std::vector<RuntimeRule>& out) {
  if (!in.has("rules")) return;
  constexpr char kRemedy[] = "write rules = [{ image = \"registry.example/team/*\", runtime = \"runsc\" }]";
  const toml::array* list = file.root.at_path("runtime.rules").as_array();
  if (!list || list->size() > kMostRules)
    return in.wrong("rules", fmt::format("must be a list of at most {} tables", kMostRules), kRemedy);
  for (const toml::node& node : *list) {
    auto rule = read_rule(node);
    if (!rule) return in.wrong("rules", "each must have an image, a runtime and nothing else", kRemedy);
    if (!is_runtime(rule->runtime))
      return in.wrong("rules", "the runtime of one must be native, docker or runsc", kRemedy);
    out.push_back(std::move(*rule));
  }
}

void check_also(Section& in, const RuntimeSection& runtime) {
  for (const std::string& name : runtime.also) {
    if (!is_runtime(name))
      in.wrong("also", "must have names of runtimes: native, docker, runsc", "write also = [\"runsc\"]");
  }
}

SecureType secure_type(Section& in, std::string_view word) {
  if (word.empty()) return SecureType::none;
  if (word == "gvisor") return SecureType::gvisor;
  if (word == "kata") return SecureType::kata;
  if (word == "firecracker") return SecureType::firecracker;
  in.wrong("type", "must be gvisor, kata, firecracker or empty", "write type = \"gvisor\"");
  return SecureType::none;
}

// As other servers have it: a name without a type would protect nothing, a type without a name would run
// something that nobody named.
void check_names(Section& in, const SecureSection& secure, bool docker) {
  bool named = !secure.docker_runtime.empty() || !secure.k8s_runtime_class.empty();
  using enum SecureType;
  if (secure.type == none && named) {
    in.wrong(secure.docker_runtime.empty() ? "k8s_runtime_class" : "docker_runtime",
             "it has no effect without a type, and sandboxes would be isolated less than it asks for",
             "write type = \"gvisor\" or type = \"kata\", or remove it");
  }
  if (secure.type == firecracker && secure.k8s_runtime_class.empty())
    in.wrong("type", "firecracker needs k8s_runtime_class", "write k8s_runtime_class = \"kata-fc\"");
  if (docker && !named && (secure.type == gvisor || secure.type == kata))
    in.wrong("type", "it needs docker_runtime: what the engine is to start containers with",
             "write docker_runtime = \"runsc\", or another name of the engine's list of runtimes");
}

// What cannot be had here, and leaving it out is not for this server to decide.
void refuse_what_is_missing(Section& in, const SecureSection& secure, bool docker) {
  using enum SecureType;
  if (secure.type == firecracker)
    in.wrong("type",
             docker ? "no Docker engine starts containers with Firecracker; only Kubernetes does"
                    : "the native runtime boots no virtual machines; Firecracker needs Kubernetes",
             "write type = \"gvisor\"");
  if (secure.type == kata && !docker)
    in.wrong("type",
             "the native runtime boots no virtual machines, and sandboxes would be isolated less than it "
             "asks for",
             "write type = \"gvisor\", or type = \"docker\" below [runtime] with an engine that has Kata");
}

void check_offers(ConfigFile& file, const Config& config) {
  for (const RuntimeRule& rule : config.runtime.rules) {
    if (config.offers(rule.runtime)) continue;
    file.wrong("runtime.rules", fmt::format("one names {}, which this server does not offer", rule.runtime),
               fmt::format("write also = [\"{}\"] below [runtime]", rule.runtime));
  }
}

}  // namespace

void read_runtime(ConfigFile& file, RuntimeSection& out) {
  Section in(file, "runtime");
  std::string type = "native", fallback;
  in.text("type", type);
  in.text("fallback", fallback);
  if (type == "docker") {
    out.type = RuntimeType::docker;
  } else if (type == "kubernetes") {
    out.type = RuntimeType::kubernetes;
  } else if (type != "native") {
    in.wrong("type", "must be native, docker or kubernetes", "write type = \"native\"");
  }
  if (!fallback.empty() && fallback != "native") {
    in.wrong("fallback", "must be native", "write fallback = \"native\" or remove it");
  }
  out.fallback_native = fallback == "native" && out.type != RuntimeType::native;
  if (out.type == RuntimeType::kubernetes && !out.fallback_native) {
    in.wrong("type", fmt::format("this build has no {} runtime", to_string(out.type)),
             "write type = \"native\", or add fallback = \"native\" to run this file on the native runtime");
  }
  in.texts("also", out.also);
  check_also(in, out);
  read_rules(file, in, out.rules);
}

void read_secure_runtime(ConfigFile& file, Config& config) {
  Section in(file, "secure_runtime");
  SecureSection& out = config.secure;
  std::string type;
  in.text("type", type);
  in.text("docker_runtime", out.docker_runtime);
  in.text("k8s_runtime_class", out.k8s_runtime_class);
  in.text("runsc", out.runsc);
  in.text("platform", out.platform);
  for (std::string* text : {&type, &out.docker_runtime, &out.k8s_runtime_class}) *text = trim(*text);
  out.type = secure_type(in, type);
  bool docker = config.effective_runtime() == RuntimeType::docker;
  check_names(in, out, docker);
  refuse_what_is_missing(in, out, docker);
  // Also where Docker is a further runtime: it is a promise about all sandboxes.
  if (config.offers("docker") && out.docker_runtime.empty() && out.type != SecureType::none)
    out.docker_runtime = out.type == SecureType::gvisor ? "runsc" : "kata-runtime";
  if (!out.runsc.empty() && !out.runsc.starts_with('/'))
    in.wrong("runsc", "must be an absolute path", "write runsc = \"/usr/bin/runsc\"");
  if (!out.platform.empty() && out.platform != "systrap" && out.platform != "ptrace")
    in.wrong("platform", "must be systrap or ptrace",
             "remove it, so that the server finds out which one works");
  check_offers(file, config);
}

}  // namespace osb::server
