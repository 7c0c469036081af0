#include <algorithm>

#include "api/changes.h"
#include "api/failure_status.h"
#include "json/escape.h"
#include "sandbox/failures.h"
#include "server/api_page.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

// Says which runtime really runs, also when the file asked for another one. Without one of several runtimes
// the service is degraded, not down.
Task<ApiResult<Answer>> health(Service& service, Request&) {
  auto troubles = co_await service.health.look();
  bool works =
      std::ranges::none_of(troubles, [](const Trouble& t) { return t.weight == HealthCheck::Weight::vital; });
  Answer answer;
  std::string& out = answer.body;
  out = "{\"status\":\"";
  out.append(troubles.empty() ? "healthy" : works ? "degraded" : "unhealthy").append("\",\"runtime\":");
  json::append_string(out, service.runtimes.standard().name());
  if (service.runtimes.all().size() > 1) {
    out.append(",\"runtimes\":[");
    for (runtime::Runtime* runtime : service.runtimes.all()) {
      if (out.back() != '[') out.push_back(',');
      json::append_string(out, runtime->name());
    }
    out.push_back(']');
  }
  if (service.config.runtime.fallback_native) {
    out.append(",\"configuredRuntime\":\"")
        .append(to_string(service.config.runtime.type))
        .append("\",\"fallback\":true");
  }
  if (!service.isolation.empty()) {
    out.append(",\"isolation\":");
    json::append_string(out, service.isolation);
  }
  if (!works) answer.status = 503;
  if (!troubles.empty()) {
    out.append(",\"checks\":").append(to_json(troubles));
  }
  out.push_back('}');
  co_return answer;
}

Task<ApiResult<Answer>> version(Service&, Request&) {
  co_return Answer{.body = "{\"version\":\"" OSB_VERSION "\"}"};
}

Task<ApiResult<Answer>> openapi(Service&, Request&) { co_return Answer{.body = std::string(openapi_text())}; }

Task<ApiResult<Answer>> docs(Service&, Request&) {
  auto page = api_page(openapi_text());
  if (!page) co_return api::refuse(api::to_api_error(sandbox::internal_error(page.error())));
  Answer answer{.body = std::move(*page), .content_type = "text/html; charset=utf-8"};
  // As every answer of the API, but with a style of its own.
  answer.headers.add("Content-Security-Policy",
                     "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  co_return answer;
}

// For Prometheus. Of a runtime that does not answer the numbers are missing, and that is said.
Task<ApiResult<Answer>> metrics(Service& service, Request&) {
  Answer answer{.body =
                    "# HELP opensandbox_metrics_up Whether the runtime has told its numbers.\n"
                    "# TYPE opensandbox_metrics_up gauge\n",
                .content_type = "text/plain; version=0.0.4; charset=utf-8"};
  std::string told;
  for (runtime::Runtime* runtime : service.runtimes.all()) {
    auto text = co_await runtime->metrics();
    answer.body.append("opensandbox_metrics_up{runtime=\"").append(runtime->name());
    answer.body.append(text ? "\"} 1\n" : "\"} 0\n");
    if (text) told.append(*text);
  }
  answer.body.append(told);
  co_return answer;
}

// Clients post this in the background after every create and ignore the outcome.
Task<ApiResult<Answer>> metrics_event(Service&, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  CO_TRY(api::check_metrics_event(request.head.headers.get("Content-Type"), body));
  co_return Answer{.status = 204, .body = ""};
}

}  // namespace

void add_service_routes(http::Router& router, Service& service) {
  mount_once(router, service, "GET", "/health", health);
  mount_once(router, service, "GET", "/version", version);
  mount_once(router, service, "GET", "/metrics", metrics);
  mount_once(router, service, "GET", "/openapi.json", openapi);
  mount_once(router, service, "GET", "/docs", docs);
  mount_once(router, service, "GET", "/redoc", docs);  // where others have a second page of the same
  mount_once(router, service, "POST", "/v1/metrics/events", metrics_event);
}

}  // namespace osb::server
