#include "api/error_catalogue.h"
#include "api/list_query.h"
#include "base/log.h"
#include "base/strings.h"
#include "http/client.h"
#include "json/decode.h"
#include "server/diagnostics.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using Events = std::vector<store::SandboxEvent>;

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr int64_t kInlineEvents = 50;
constexpr int64_t kInlineLines = 100;
constexpr auto kExecdLimit = std::chrono::seconds(5);
constexpr size_t kMostOutput = 1 << 20;

Answer text(std::string body, bool deprecated) {
  Answer answer{.body = std::move(body), .content_type = std::string(kText)};
  if (deprecated) answer.headers.add("Deprecation", "true");
  return answer;
}

const std::string& id_of(const Request& request) { return request.params.find("id")->second; }

// The stable form is asked for by naming a scope, even an empty one.
ApiResult<std::optional<std::string>> scope_of(const http::Query& query, std::string_view own,
                                               std::string_view known) {
  auto given = query.get("scope");
  if (!given) return std::nullopt;
  std::string scope = to_lower(trim(*given));
  if (scope != own && scope != "all") return api::refuse(api::invalid_scope(*given, known));
  return scope;
}

// The newest events; 404 for an id that has neither events nor a row.
ApiResult<Events> read_events(Service& service, const std::string& id, int64_t limit) {
  auto events = service.store.events().of(id, limit);
  if (!events) {
    log::error("cannot read events", {{"error", events.error().message}});
    return api::refuse(api::internal_error(events.error()));
  }
  if (events->empty()) TRY(service.lifecycle.get(id));
  return std::move(*events);
}

Task<Result<store::Output>> ask_execd(Service& service, std::string handle) {
  http::ClientConnection connection(
      CO_TRY(co_await service.runtime.connect(std::move(handle), runtime::kExecdPort)));
  http::RequestHead head{"GET", "/entry/output", true, {{"Host", "execd"}}};
  auto answer = CO_TRY(co_await http::fetch(connection, std::move(head), "", kMostOutput));
  auto value = CO_TRY(json::parse(answer.body));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "answer");
  store::Output output{field["output"].required_string(), field["truncated"].boolean().value_or(false)};
  if (answer.head.status != 200 || !issues.empty()) co_return fail(Code::corrupt, "an odd answer of execd");
  co_return output;
}

// What the entry process wrote: from execd while that runs, from the store afterwards.
Task<ApiResult<Logs>> read_logs(Service& service, std::string id, int64_t tail,
                                std::optional<WallTime> since = {}) {
  store::SandboxPtr row = CO_TRY(service.lifecycle.get(id));
  Logs nothing{.text = "(no logs)"};
  switch (row->status.state) {
    case store::State::running: {
      auto output = co_await io::with_deadline(kExecdLimit, "execd", ask_execd(service, row->handle));
      if (output) co_return select_logs(*output, tail, since);
      nothing.warning = "The sandbox did not give its output: " + output.error().message;
      break;
    }
    case store::State::terminated:
    case store::State::failed: {
      auto output = service.store.outputs().find(id);
      if (!output) co_return api::refuse(api::internal_error(output.error()));
      if (*output) co_return select_logs(**output, tail, since);
      break;
    }
    default:
      nothing.warning = "The output can be read when the sandbox is Running again, or has ended.";
  }
  co_return nothing;
}

Task<ApiResult<Answer>> get_logs(Service& service, Request& request) {
  http::Query query(request.head.query());
  auto scope = CO_TRY(scope_of(query, "container", "container or all"));
  int64_t tail = CO_TRY(api::integer_parameter(query, "tail", {1, 10000, kInlineLines}));
  std::optional<WallTime> since;
  if (auto given = query.get("since")) since = parse_since(*given, service.clock.now());
  if (!scope) {
    Logs logs = CO_TRY(co_await read_logs(service, id_of(request), tail, since));
    co_return text(std::move(logs.text), true);
  }
  Logs logs = CO_TRY(co_await read_logs(service, id_of(request), kInlineLines));
  InlineDiagnostics out{id_of(request),          "logs",        *scope, std::move(logs.text),
                        std::move(logs.warning), logs.truncated};
  if (*scope == "all" && out.warning.empty())
    out.warning = "Only the output of the entry process contributes.";
  co_return Answer{.body = to_json(out)};
}

ApiResult<Answer> get_events(Service& service, Request& request) {
  http::Query query(request.head.query());
  auto scope = TRY(scope_of(query, "runtime", "runtime or all"));
  int64_t limit = TRY(api::integer_parameter(query, "limit", {1, 500, 50}));
  if (!scope) return text(events_text(TRY(read_events(service, id_of(request), limit))), true);
  Events events = TRY(read_events(service, id_of(request), kInlineEvents + 1));
  InlineDiagnostics out{id_of(request), "events", *scope, "", ""};
  out.truncated = events.size() > kInlineEvents;
  if (out.truncated) events.resize(kInlineEvents);
  out.content = events_text(events);
  if (*scope == "all") out.warning = "Only runtime events contribute.";
  return Answer{.body = to_json(out)};
}

ApiResult<Answer> get_inspect(Service& service, Request& request) {
  store::SandboxPtr row = TRY(service.lifecycle.get(id_of(request)));
  return text(inspect_text(*row, service.runtime.name(), service.runtime.isolation()), false);
}

Task<ApiResult<Answer>> get_summary(Service& service, Request& request) {
  http::Query query(request.head.query());
  int64_t tail = CO_TRY(api::integer_parameter(query, "tail", {1, 10000, 50}));
  int64_t limit = CO_TRY(api::integer_parameter(query, "event_limit", {1, 500, 20}));
  const std::string& id = id_of(request);
  Events events = CO_TRY(read_events(service, id, limit));
  auto row = service.lifecycle.get(id);
  std::string inspect =
      row ? inspect_text(**row, service.runtime.name(), service.runtime.isolation()) : "(gone)\n";
  auto logs = co_await read_logs(service, id, tail);
  co_return text("==== sandbox " + id + " ====\n\n-- INSPECT --\n" + inspect + "\n-- EVENTS --\n" +
                     events_text(events) + "\n-- LOGS --\n" + (logs ? logs->text : "(no logs)") + "\n",
                 false);
}

}  // namespace

void add_diagnostics_routes(http::Router& router, Service& service) {
  mount(router, service, "GET", "/sandboxes/{id}/diagnostics/logs", get_logs);
  mount(router, service, "GET", "/sandboxes/{id}/diagnostics/events", get_events);
  mount(router, service, "GET", "/sandboxes/{id}/diagnostics/inspect", get_inspect);
  mount(router, service, "GET", "/sandboxes/{id}/diagnostics/summary", get_summary);
}

}  // namespace osb::server
