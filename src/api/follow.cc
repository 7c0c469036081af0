#include "api/follow.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/error_catalogue.h"
#include "api/list_query.h"
#include "base/strings.h"
#include "json/escape.h"

namespace osb::api {
namespace {

constexpr int64_t kLongestWait = 300;
constexpr int64_t kUsualWait = 25;  // clients give up after 30

void member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (out.back() != '{') out.push_back(',');
  json::append_string(out, name);
  out.push_back(':');
  json::append_string(out, value);
}

// The state after an event. One that ended begins its detail with the reason.
std::string_view state_after(const sandbox::Event& event, std::string_view& reason) {
  using sandbox::State;
  if (event.kind == "Created") return to_string(State::pending);
  if (event.kind == "Running" || event.kind == "Resumed" || event.kind == "Recovered")
    return to_string(State::running);
  if (event.kind == "Paused") return to_string(State::paused);
  if (event.kind != "Ended") return "";
  std::string_view detail = event.detail;
  reason = detail.substr(0, detail.find(':'));
  bool well = reason == to_string(sandbox::Reason::entrypoint_exited);
  return to_string(well ? State::terminated : State::failed);
}

}  // namespace

bool WaitQuery::wants(sandbox::State state) const { return std::ranges::find(states, state) != states.end(); }

ApiResult<WaitQuery> decode_wait_query(std::string_view raw_query) {
  http::Query query(raw_query);
  WaitQuery out{.states = {},
                .timeout = std::chrono::seconds(
                    TRY(integer_parameter(query, "timeout", {0, kLongestWait, kUsualWait})))};
  for (const std::string& words : query.all("state")) {
    for (std::string_view word : split(words, ',')) {
      auto state = sandbox::state_from(trim(word));
      if (!state) {
        return refuse(invalid_parameter(
            "state", "must be Pending, Running, Pausing, Paused, Resuming, Stopping, Terminated or Failed"));
      }
      out.states.push_back(*state);
    }
  }
  if (out.states.empty())
    return refuse(invalid_request({"missing", {std::string("query"), std::string("state")}, "is required"}));
  return out;
}

ApiResult<std::optional<int64_t>> decode_last_event_id(std::string_view field, std::string_view raw_query) {
  std::string given(trim(field));
  if (given.empty()) given = http::Query(raw_query).get("lastEventId").value_or("");
  if (given.empty()) return std::nullopt;
  auto number = parse_number<int64_t>(given);
  if (!number || *number < 0)
    return refuse(invalid_parameter("Last-Event-ID", "must be the id of an event of this stream"));
  return number;
}

void append_event(std::string& out, const StreamedEvent& streamed) {
  const sandbox::Event& event = streamed.event;
  std::string_view reason;
  std::string_view state = state_after(event, reason);
  fmt::format_to(std::back_inserter(out), "id: {}\nevent: {}\ndata: {{", streamed.number, event.kind);
  member(out, "sandboxId", streamed.sandbox_id);
  member(out, "type", event.kind);
  member(out, "state", state);
  member(out, "reason", reason);
  member(out, "message", event.detail);
  member(out, "at", format_api_time(event.at));
  out.append("}\n\n");
}

void append_reset(std::string& out, int64_t number) {
  fmt::format_to(
      std::back_inserter(out),
      "id: {}\nevent: Reset\ndata: {{\"type\":\"Reset\",\"message\":\"Events before these are no longer "
      "known; look anew at what there is: GET /sandboxes.\"}}\n\n",
      number);
}

}  // namespace osb::api
