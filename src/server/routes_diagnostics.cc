#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/list_query.h"
#include "base/log.h"
#include "base/strings.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/diagnostics.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using api::on_wire;
using sandbox::Principal;
using Events = std::vector<sandbox::Event>;

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr int64_t kInlineEvents = 50;
constexpr int64_t kInlineLines = 100;
constexpr auto kLogsLimit = std::chrono::seconds(5);

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
  if (scope != own && scope != "all") return api::refuse(api::invalid_scope(known));
  return scope;
}

// The newest events; 404 for an id that has neither events nor a row.
Task<ApiResult<Events>> read_events(Service& service, Principal who, std::string id, int64_t limit) {
  auto events = co_await service.store.events(sandbox::Scope::of(who), id, limit);
  if (!events) {
    log::error("cannot read events", {{"id", id}, {"owner", who.owner}, {"error", events.error().message}});
    co_return api::refuse(api::to_api_error(sandbox::internal_error(events.error())));
  }
  if (events->empty()) CO_TRY(on_wire(co_await service.lifecycle.get(std::move(who), std::move(id))));
  co_return std::move(*events);
}

// What the entry process wrote: from the runtime while that runs, from the store afterwards.
Task<ApiResult<Logs>> read_logs(Service& service, Principal who, std::string id, int64_t tail,
                                std::optional<WallTime> since = {}) {
  sandbox::SandboxPtr row = CO_TRY(on_wire(co_await service.lifecycle.get(who, id)));
  Logs nothing{.text = "(no logs)"};
  switch (row->status.state) {
    case sandbox::State::running: {
      auto output =
          co_await io::with_deadline(kLogsLimit, "logs", service.runtimes.of(row->runtime).logs(row->handle));
      if (output)
        co_return select_logs(sandbox::Output{std::move(output->text), output->truncated}, tail, since);
      nothing.warning = "The sandbox did not give its output: " + output.error().message;
      break;
    }
    case sandbox::State::terminated:
    case sandbox::State::failed: {
      auto output = co_await service.store.output(sandbox::Scope::of(who), id);
      if (!output) co_return api::refuse(api::to_api_error(sandbox::internal_error(output.error())));
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
    Logs logs = CO_TRY(co_await read_logs(service, caller_of(request), id_of(request), tail, since));
    co_return text(std::move(logs.text), true);
  }
  Logs logs = CO_TRY(co_await read_logs(service, caller_of(request), id_of(request), kInlineLines));
  InlineDiagnostics out{id_of(request),          "logs",        *scope, std::move(logs.text),
                        std::move(logs.warning), logs.truncated};
  if (*scope == "all" && out.warning.empty())
    out.warning = "Only the output of the entry process contributes.";
  co_return Answer{.body = to_json(out)};
}

Task<ApiResult<Answer>> get_events(Service& service, Request& request) {
  http::Query query(request.head.query());
  auto scope = CO_TRY(scope_of(query, "runtime", "runtime or all"));
  int64_t limit = CO_TRY(api::integer_parameter(query, "limit", {1, 500, 50}));
  if (scope) limit = kInlineEvents + 1;
  Events events = CO_TRY(co_await read_events(service, caller_of(request), id_of(request), limit));
  if (!scope) co_return text(events_text(events), true);
  InlineDiagnostics out{id_of(request), "events", *scope, "", ""};
  out.truncated = events.size() > kInlineEvents;
  if (out.truncated) events.resize(kInlineEvents);
  out.content = events_text(events);
  if (*scope == "all") out.warning = "Only runtime events contribute.";
  co_return Answer{.body = to_json(out)};
}

Task<ApiResult<Answer>> get_inspect(Service& service, Request& request) {
  sandbox::SandboxPtr row =
      CO_TRY(on_wire(co_await service.lifecycle.get(caller_of(request), id_of(request))));
  co_return text(inspect_text(*row, service.runtimes.of(row->runtime)), false);
}

Task<ApiResult<Answer>> get_summary(Service& service, Request& request) {
  http::Query query(request.head.query());
  int64_t tail = CO_TRY(api::integer_parameter(query, "tail", {1, 10000, 50}));
  int64_t limit = CO_TRY(api::integer_parameter(query, "event_limit", {1, 500, 20}));
  const std::string& id = id_of(request);
  Principal who = caller_of(request);
  Events events = CO_TRY(co_await read_events(service, who, id, limit));
  auto row = co_await service.lifecycle.get(who, id);
  std::string inspect = row ? inspect_text(**row, service.runtimes.of((*row)->runtime)) : "(gone)\n";
  auto logs = co_await read_logs(service, who, id, tail);
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
