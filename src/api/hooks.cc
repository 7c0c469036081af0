#include "api/hooks.h"

#include <fmt/format.h>

#include <set>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "base/schedule.h"
#include "base/strings.h"

namespace osb::api {
namespace {

constexpr size_t kMostHooks = 64;

void forbid_others(const json::Field& field, std::initializer_list<std::string_view> known) {
  auto members = field.object();
  if (!members) return;
  for (const auto& [name, member] : *members) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      member.complain("extra_forbidden", "is not a known member");
    }
  }
}

Hook decode_hook(const json::Field& field, int64_t max_seconds) {
  Hook hook;
  json::Field command = field["command"];
  if (!command.present()) command.complain("missing", "is required");
  if (auto words = command.string_list()) hook.command = std::move(*words);
  if (command.present() && command.raw()->is_array()) {
    if (command.raw()->get_array().empty()) {
      command.complain("too_short", "must have at least 1 element");
    } else if (!hook.command.empty() && trim(hook.command[0]).empty()) {
      complain_value(command, "the first word must not be blank");
    }
  }
  json::Field timeout = field.any_of({"timeoutSeconds", "timeout_seconds"});
  hook.timeout_seconds = timeout.integer();
  if (hook.timeout_seconds && *hook.timeout_seconds < 1)
    timeout.complain("greater_than_equal", "must be at least 1");
  if (hook.timeout_seconds && *hook.timeout_seconds > max_seconds) {
    timeout.complain("less_than_equal", fmt::format("must be at most {}", max_seconds));
  }
  return hook;
}

boost::json::object to_json(const Hook& hook) {
  boost::json::object out{{"command", boost::json::array(hook.command.begin(), hook.command.end())}};
  if (hook.timeout_seconds) out["timeoutSeconds"] = *hook.timeout_seconds;
  if (!hook.name.empty()) out["name"] = hook.name;
  if (!hook.schedule.empty()) out["schedule"] = hook.schedule;
  return out;
}

std::string decode_word(const json::Field& field) {
  std::string word(trim(field.required_string()));
  if (word.empty() && field.present() && field.raw()->is_string()) complain_value(field, "must not be blank");
  return word;
}

}  // namespace

std::optional<Hooks> decode_hooks(const json::Field& field) {
  if (!field.present()) return std::nullopt;
  Hooks hooks;
  forbid_others(field, {"preStart", "pre_start", "periodic"});
  if (json::Field pre = field.any_of({"preStart", "pre_start"}); pre.present()) {
    forbid_others(pre, {"command", "timeoutSeconds", "timeout_seconds"});
    hooks.pre_start = decode_hook(pre, 10800);
  }
  std::set<std::string> names;
  if (auto elements = field["periodic"].array()) {
    for (const json::Field& element : *elements) {
      forbid_others(element, {"name", "schedule", "command", "timeoutSeconds", "timeout_seconds"});
      Hook hook = decode_hook(element, 300);
      hook.name = decode_word(element["name"]);
      hook.schedule = decode_word(element["schedule"]);
      if (!hook.name.empty() && !names.insert(hook.name).second)
        complain_value(element, "hook names must be unique");
      hooks.periodic.push_back(std::move(hook));
    }
  }
  return hooks;
}

ApiResult<std::string> check_hooks(const Hooks& hooks) {
  if (hooks.periodic.size() > kMostHooks) {
    return refuse(invalid_parameter("lifecycle.periodic", fmt::format("has more than {} hooks", kMostHooks)));
  }
  boost::json::object out;
  if (hooks.pre_start) out["preStart"] = to_json(*hooks.pre_start);
  boost::json::array periodic;
  for (const Hook& hook : hooks.periodic) {
    if (auto schedule = Schedule::parse(hook.schedule); !schedule) {
      return refuse(invalid_parameter(fmt::format("lifecycle.periodic[{}].schedule", periodic.size()),
                                      std::move(schedule.error().message)));
    }
    periodic.push_back(to_json(hook));
  }
  if (!periodic.empty()) out["periodic"] = std::move(periodic);
  return out.empty() ? std::string() : json::print(out);
}

}  // namespace osb::api
