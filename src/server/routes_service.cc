#include "api/changes.h"
#include "json/escape.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

// Says which runtime really runs, also when the file asked for another one.
Task<ApiResult<Answer>> health(Service& service, Request&) {
  auto troubles = co_await service.health.look();
  Answer answer;
  std::string& out = answer.body;
  out = troubles.empty() ? "{\"status\":\"healthy\",\"runtime\":" : "{\"status\":\"unhealthy\",\"runtime\":";
  json::append_string(out, service.runtime.name());
  if (service.config.runtime.fallback_native) {
    out.append(",\"configuredRuntime\":\"")
        .append(to_string(service.config.runtime.type))
        .append("\",\"fallback\":true");
  }
  if (!service.isolation.empty()) {
    out.append(",\"isolation\":");
    json::append_string(out, service.isolation);
  }
  if (!troubles.empty()) {
    answer.status = 503;
    out.append(",\"checks\":").append(to_json(troubles));
  }
  out.push_back('}');
  co_return answer;
}

Task<ApiResult<Answer>> version(Service&, Request&) {
  co_return Answer{.body = "{\"version\":\"" OSB_VERSION "\"}"};
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
  mount_once(router, service, "POST", "/v1/metrics/events", metrics_event);
}

}  // namespace osb::server
