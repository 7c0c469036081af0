// Policies as clients write them, the files that keep them, the lists of a sidecar's operator, and targets.
// What is taken is printed and read again as the same.

#include "check.h"
#include "egress/policy.h"
#include "egress/policy_files.h"
#include "egress/sidecar_settings.h"
#include "egress/verdict.h"

using namespace osb::egress;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view input = osb::fuzz::text_of(data, size);
  if (auto policy = parse_policy(input)) {
    auto again = parse_policy(to_json(*policy));
    CHECK(again && to_json(*again) == to_json(*policy));
    Overlay none;
    Judge judge(none, *policy);
    CHECK(!judge.connection(*osb::sandbox::parse_ip("127.0.0.1"), 80, {}, false).allow);
    (void)judge.name("example.com");
  }
  if (auto rules = parse_rules(input))
    CHECK(!rules->empty() && merge({}, *rules).rules.size() <= rules->size());
  if (auto targets = parse_targets(input)) CHECK(!targets->empty());
  (void)parse_kept(input);
  if (auto policy = parse_policy(input)) {
    auto again = parse_policy(to_file_text(*policy));
    CHECK(again && to_json(*again) == to_json(*policy));
  }
  if (auto rules = parse_always(input, "deny")) {
    for (const Rule& rule : *rules) CHECK(!rule.allow);
  }
  (void)osb::sandbox::normal_name(input);
  if (auto target = osb::sandbox::parse_target(input); target && target->kind == EgressTarget::Kind::name)
    CHECK(matches(*target, target->name));
  return 0;
}
