#include "server/renew_intent.h"

#include "base/ids.h"
#include "json/decode.h"

namespace osb::server {

Result<RenewIntent> parse_renew_intent(std::string_view text) {
  if (text.size() > kMaxIntent) return fail(Code::invalid_argument, "too long");
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "intent", json::Reading::exact);
  RenewIntent intent{.sandbox = field["sandbox_id"].required_string()};
  std::string observed = field["observed_at"].required_string();
  if (!issues.empty()) return fail(Code::invalid_argument, "a member is missing or no string");
  // What is no id is not looked for.
  if (!is_sandbox_id(intent.sandbox)) return fail(Code::invalid_argument, "sandbox_id is no id");
  auto time = parse_time(observed);
  if (!time) return fail(Code::invalid_argument, "observed_at is no time");
  intent.observed = *time;
  return intent;
}

}  // namespace osb::server
