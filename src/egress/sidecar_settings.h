#pragma once

// The settings of a sidecar (sidecar.h), in the environment variables that other OpenSandbox servers give to
// theirs: OPENSANDBOX_EGRESS_*. What would weaken the policy if it were misunderstood is refused; what has no
// meaning here is named in `warnings`.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/host_network.h"
#include "egress/policy.h"
#include "egress/verdict.h"
#include "sandbox/webhook.h"

namespace osb::egress {

enum class LogOutput { standard_error, standard_output };

struct SidecarSettings {
  Policy policy;            // at the start, when no file has another
  std::string policy_file;  // "": changes are not kept
  std::string api_host;     // numeric; "": every address
  uint16_t api_port = 18080;
  std::string token;  // "": everybody may ask
  size_t most_rules = kMostRules;
  std::vector<NameServer> name_servers;  // none: those of /etc/resolv.conf
  std::optional<std::chrono::milliseconds> dns_patience;
  Overlay::Https https = Overlay::Https::open;
  std::vector<EgressTarget> resolvers;
  std::optional<sandbox::Webhook> deny_webhook;
  std::string sandbox_id;
  std::string log_level = "info";
  LogOutput log_output = LogOutput::standard_error;
  std::vector<std::string> warnings;
};

// Of "NAME=VALUE". Whether it is meant for a sidecar at all: one of its variables is there.
bool is_for_sidecar(const std::vector<std::string>& environment);
// Code::invalid_argument names the variable.
Result<SidecarSettings> sidecar_settings(const std::vector<std::string>& environment);

// A file of targets, one in each line; empty lines and those that begin with # do not count.
Result<std::vector<Rule>> parse_always(std::string_view text, std::string_view action);

// What a policy file has in it: JSON, two blanks to a level.
std::string to_file_text(const Policy& policy);

}  // namespace osb::egress
