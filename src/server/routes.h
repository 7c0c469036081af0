#pragma once

// The routes, one function per group. Most actions return an Answer or an ApiError and know nothing of the
// connection; only the proxy streams.

#include "api/create_rules.h"
#include "server/answer.h"
#include "server/service.h"

namespace osb::server {

struct Answer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  http::Headers headers = {};
};

using Action = Task<api::ApiResult<Answer>> (*)(Service&, Request&);
using PlainAction = api::ApiResult<Answer> (*)(Service&, Request&);  // for what never waits

// Every route of the API exists at / and at /v1.
void mount(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
           Action action);
void mount(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
           PlainAction action);
// At this very path only.
void mount_once(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
                Action action);

void add_sandbox_routes(http::Router& router, Service& service);
void add_snapshot_routes(http::Router& router, Service& service);
void add_pool_routes(http::Router& router, Service& service);
void add_volume_routes(http::Router& router, Service& service);
void add_endpoint_routes(http::Router& router, Service& service);
void add_diagnostics_routes(http::Router& router, Service& service);
void add_service_routes(http::Router& router, Service& service);
void add_follow_routes(http::Router& router, Service& service);
void add_alias_routes(http::Router& router, Service& service);
void add_commit_routes(http::Router& router, Service& service);
void add_image_routes(http::Router& router, Service& service);
void add_push_routes(http::Router& router, Service& service);
void add_egress_routes(http::Router& router, Service& service);
void add_proxy_routes(http::Router& router, Service& service);

// The runtime of the operator's rules, for a body that names none; the sandbox then shows it among its
// extensions.
void choose_runtime(const Config& config, api::CreateBody& body);

// What this server and the runtime that the body names can do with it.
api::ApiResult<api::CreateRules> create_rules(const Config& config, runtime::Runtimes& runtimes,
                                              std::string_view runtime, WallTime now);

// "/v1" or "": the mount under which a request came.
std::string_view mount_prefix(const Request& request);

// 422 when it is no number, 400 when it is no port.
api::ApiResult<uint16_t> port_parameter(const Request& request);

}  // namespace osb::server
