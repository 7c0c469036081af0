#include "api/error_catalogue.h"
#include "api/list_query.h"
#include "base/log.h"
#include "base/strings.h"
#include "server/diagnostics.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using Events = std::vector<store::SandboxEvent>;

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr int64_t kInlineEvents = 50;

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

ApiResult<Answer> get_logs(Service& service, Request& request) {
  http::Query query(request.head.query());
  auto scope = TRY(scope_of(query, "container", "container or all"));
  TRY(api::integer_parameter(query, "tail", {1, 10000, 100}));
  TRY(service.lifecycle.get(id_of(request)));
  if (!scope) return text(logs_text(), true);
  InlineDiagnostics out{id_of(request), "logs", *scope, logs_text(),
                        "The output of the entry process is not collected by this runtime."};
  return Answer{.body = to_json(out)};
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
  return text(inspect_text(*row, service.runtime.name()), false);
}

ApiResult<Answer> get_summary(Service& service, Request& request) {
  http::Query query(request.head.query());
  TRY(api::integer_parameter(query, "tail", {1, 10000, 50}));
  int64_t limit = TRY(api::integer_parameter(query, "event_limit", {1, 500, 20}));
  const std::string& id = id_of(request);
  Events events = TRY(read_events(service, id, limit));
  auto row = service.lifecycle.get(id);
  std::string inspect = row ? inspect_text(**row, service.runtime.name()) : "(gone)\n";
  return text("==== sandbox " + id + " ====\n\n-- INSPECT --\n" + inspect + "\n-- EVENTS --\n" +
                  events_text(events) + "\n-- LOGS --\n" + logs_text() + "\n",
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
