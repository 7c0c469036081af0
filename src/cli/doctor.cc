#include "cli/doctor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/block_on.h"
#include "cli/engine_probe.h"
#include "docker/docker_runtime.h"
#include "io/socket.h"
#include "runtime/native/native_capabilities.h"

namespace osb::cli {
namespace {

enum class Grade { good, note, weaker, untried, missing };

// Without root the service runs in the tier without root, if it can; what root would have is then less, not
// missing.
bool runs_rootless(const std::vector<Finding>& findings, bool as_root) {
  return !as_root && std::ranges::any_of(findings, [](const Finding& finding) {
    return std::string_view(finding.probe->name) == kRootlessProbe && finding.result.has_value();
  });
}

Grade grade(const Finding& finding, bool as_root, bool rootless) {
  if (finding.result) return Grade::good;
  if (finding.probe->need == Need::note) return Grade::note;
  if (!as_root && finding.result.error().code == Code::permission_denied &&
      std::string_view(finding.probe->name) != "root") {
    return Grade::untried;
  }
  if (rootless && std::string_view(finding.probe->name) == "root") return Grade::weaker;
  return finding.probe->need == Need::required ? Grade::missing : Grade::weaker;
}

std::string_view word(Grade grade) {
  switch (grade) {
    case Grade::good:
      return "ok";
    case Grade::note:
      return "no";
    case Grade::weaker:
      return "weaker";
    case Grade::untried:
      return "untried";
    case Grade::missing:
      return "MISSING";
  }
  return "?";
}

void add_name(std::string& list, const char* name) {
  list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
}

// Who answers at the server's address: a line of the same form as the others.
io::Task<int> print_server_line(Connection connection) {
  Api api(connection);
  auto line = [](std::string_view word, std::string_view text) {
    fmt::print("{:<8} {:<28} {}\n", word, "server", text);
  };
  auto healthy = co_await api.health();
  const std::string where = api.server().authority();  // perhaps that of one for the occasion
  auto known = Result<void>();
  if (healthy) known = co_await api.check_key();  // /health needs no key
  if (healthy && !known && known.error().code == Code::unauthenticated) {
    line("no",
         fmt::format("answers at {}, but {}; fix: set OPEN_SANDBOX_API_KEY to the server's key, or give "
                     "it with --api-key",
                     where, connection.api_key.empty() ? "wants a key" : "this is not its key"));
  } else if (healthy) {
    line("ok", "answers at " + where);
  } else if (healthy.error().code == Code::exhausted) {
    std::string text = healthy.error().message;
    std::replace(text.begin(), text.end(), '\n', ';');
    line("no", fmt::format("answers at {}, but: {}", where, text));
  } else if (healthy.error().code != Code::unavailable) {
    line("weaker",
         fmt::format(
             "{} is taken by something else; so: the server cannot use this port; fix: stop that, or choose "
             "another port ([server] port in the configuration, ./quickstart --port N)",
             where));
  } else {
    line("no", fmt::format("nothing answers at {}; fix: start it with `sudo opensandbox-server` (or without "
                           "sudo, as yourself), or ./quickstart",
                           where));
  }
  co_return 0;
}

runtime::Capabilities container_capabilities(const server::Config& config) {
  bool on_host = config.docker.network_mode == docker::kHostNetwork;
  bool can_police = config.docker.remote ? !config.egress.image.empty() : !on_host;
  return docker::docker_capabilities({.policies = config.egress.enabled && can_police,
                                      .own_kernel = !config.secure.docker_runtime.empty(),
                                      .host_network = on_host,
                                      .published = config.docker.direct,
                                      .remote = config.docker.remote});
}

}  // namespace

Diagnosis diagnose(const std::vector<Finding>& findings, bool as_root) {
  Diagnosis out;
  std::string missing, weaker;
  bool untried = false;
  bool rootless = runs_rootless(findings, as_root);
  for (const Finding& finding : findings) {
    const Probe& probe = *finding.probe;
    Grade g = grade(finding, as_root, rootless);
    out.text += fmt::format("{:<8} {:<28} ", word(g), probe.name);
    if (g == Grade::good) {
      out.text += *finding.result + "\n";
      continue;
    }
    if (g == Grade::untried) {
      out.text += finding.result.error().message + "; fix: sudo osb doctor\n";
      untried = true;
      continue;
    }
    out.text +=
        fmt::format("{}; so: {}; fix: {}\n", finding.result.error().message, probe.if_missing, probe.remedy);
    if (g == Grade::missing) add_name(missing, probe.name);
    if (g == Grade::weaker) add_name(weaker, probe.name);
  }
  out.can_run = missing.empty() && (!untried || rootless);
  if (!missing.empty()) {
    out.text +=
        fmt::format("\nSandboxes cannot run here: {} missing; the lines above say how to fix it.\n", missing);
  } else if (rootless) {
    out.text +=
        "\nSandboxes can run here without root: opensandbox-server started by this user. They lack what the "
        "diagnostics of each sandbox list (docs/security-model.md, \"Without root\"). What root would have: "
        "sudo osb doctor\n";
  } else if (untried) {
    out.text += "\nNot everything could be tried without root: sudo osb doctor\n";
  } else if (!weaker.empty()) {
    out.text += fmt::format("\nSandboxes can run here, with less than they could have: {}.\n", weaker);
  } else {
    out.text += "\nSandboxes can run here.\n";
  }
  return out;
}

std::string describe(const runtime::Capabilities& capabilities) {
  std::string out;
  for (const auto& [name, ability] : runtime::abilities_of(capabilities)) {
    bool can = ability.kind == runtime::Ability::Kind::yes;
    std::string what = ability.most ? fmt::format("at most {}, {}", *ability.most, ability.why)
                       : can        ? "sandboxes can have it"
                                    : ability.why;
    out += fmt::format("{:<8} {:<28} {}\n", can ? "ok" : "no", name, what);
  }
  return out;
}

int examine_machine(const DoctorOptions& options) {
  // First what needs a process without threads.
  auto findings = probe_machine(machine_at(options.state_dir));
  auto config = configuration_at(options.config);
  findings.push_back(examine_engine(config));
  auto diagnosis = diagnose(findings, ::geteuid() == 0);
  block_on(print_server_line(options.connection));
  // Without root it depends on what is delegated to the service, and diagnostics of each sandbox say it.
  if (::geteuid() == 0) {
    if (auto cgroups = sys::CgroupLayout::detect())
      fmt::print("{}", describe(config && config->standard_runtime() == "docker"
                                    ? container_capabilities(*config)
                                    : runtime::native_capabilities(*cgroups)));
  }
  fmt::print("{}", diagnosis.text);
  fmt::print(
      "\nThis version does not have: templates, credential vaults, GPUs in native "
      "sandboxes. A request\nthat asks for one of them is refused, and the answer names it.\n");
  return diagnosis.can_run ? 0 : 1;
}

}  // namespace osb::cli
