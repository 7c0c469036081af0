#include "api/create_request.h"
#include "api/error_catalogue.h"
#include "api/list_query.h"
#include "api/sandbox_json.h"
#include "base/log.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

const std::string& id_of(const Request& request) { return request.params.find("id")->second; }

Task<ApiResult<Answer>> create_sandbox(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto decoded = CO_TRY(api::decode_create(request.head.headers.get("Content-Type"), body));
  api::CreateRules rules{service.config.server.max_sandbox_timeout_seconds, std::string(api::host_arch()),
                         service.clock.now()};
  api::CreatePlan plan = CO_TRY(api::check_create(std::move(decoded), rules));
  bool with_metadata = plan.metadata.has_value();
  auto turn = CO_TRY(co_await service.creates.enter());
  // It may have waited, here or in the listener: nobody would delete what nobody is told of.
  if (request.sender != nullptr && co_await request.sender->gone()) co_return api::refuse(api::caller_gone());
  store::Sandbox row = CO_TRY(co_await service.lifecycle.create(std::move(plan)));
  co_return Answer{.status = 202,
                   .body = api::created_json(row, with_metadata),
                   .headers = {{"Location", "/v1/sandboxes/" + row.id}}};
}

ApiResult<Answer> get_sandbox(Service& service, Request& request) {
  store::SandboxPtr row = TRY(service.lifecycle.get(id_of(request)));
  Answer answer;
  answer.body.reserve(640);
  api::append_sandbox(answer.body, *row);
  return answer;
}

Result<std::string> render_list(store::Sandboxes& sandboxes, const api::ListQuery& query) {
  std::string out;
  out.reserve(256 + 512 * static_cast<size_t>(query.page_size));
  out = "{\"items\":[";
  auto append = [&out](const store::Sandbox& row) {
    if (out.back() == '}') out.push_back(',');
    api::append_sandbox(out, row);
  };
  TRY(sandboxes.list(query.filter, query.page_size, (query.page - 1) * query.page_size, append));
  int64_t total = TRY(sandboxes.count(query.filter));
  out.append("],");
  api::append_pagination(out, {query.page, query.page_size, total});
  out.push_back('}');
  return out;
}

ApiResult<Answer> list_sandboxes(Service& service, Request& request) {
  store::Sandboxes& sandboxes = service.store.sandboxes();
  std::string_view raw_query = request.head.query();
  if (const std::string* page = service.lists.find(raw_query, sandboxes.generation()))
    return Answer{.body = *page};
  api::ListQuery query = TRY(api::decode_list_query(raw_query));
  auto page = render_list(sandboxes, query);
  if (!page) {
    log::error("cannot list sandboxes", {{"error", page.error().message}});
    return api::refuse(api::internal_error(page.error()));
  }
  service.lists.put(raw_query, sandboxes.generation(), *page);
  return Answer{.body = std::move(*page)};
}

Task<ApiResult<Answer>> delete_sandbox(Service& service, Request& request) {
  CO_TRY(co_await service.lifecycle.remove(id_of(request)));
  co_return Answer{.status = 204, .body = ""};
}

Task<ApiResult<Answer>> patch_metadata(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto patch = CO_TRY(api::decode_metadata_patch(request.head.headers.get("Content-Type"), body));
  store::Sandbox row = CO_TRY(service.lifecycle.patch_metadata(id_of(request), patch));
  Answer answer;
  api::append_sandbox(answer.body, row);
  co_return answer;
}

Task<ApiResult<Answer>> renew_expiration(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  WallTime wanted = CO_TRY(api::decode_renewal(request.head.headers.get("Content-Type"), body));
  WallTime expires = CO_TRY(service.lifecycle.renew(id_of(request), wanted));
  co_return Answer{.body = "{\"expiresAt\":\"" + format_api_time(expires) + "\"}"};
}

// A body is ignored: none is defined, and clients send what they like.
Task<ApiResult<Answer>> pause_sandbox(Service& service, Request& request) {
  CO_TRY(co_await service.lifecycle.pause(id_of(request)));
  co_return Answer{.status = 202, .body = ""};
}

Task<ApiResult<Answer>> resume_sandbox(Service& service, Request& request) {
  CO_TRY(co_await service.lifecycle.resume(id_of(request)));
  co_return Answer{.status = 202, .body = ""};
}

ApiResult<Answer> snapshots(Service&, Request&) {
  return api::refuse(api::not_implemented("SNAPSHOT::NOT_IMPLEMENTED", "Snapshots"));
}
ApiResult<Answer> pools(Service&, Request&) {
  return api::refuse(api::not_implemented("SANDBOX::UNSUPPORTED", "Pools"));
}
ApiResult<Answer> templates(Service&, Request&) {
  return api::refuse(api::not_implemented("SANDBOX::UNSUPPORTED", "Templates"));
}
ApiResult<Answer> network_policy(Service& service, Request& request) {
  TRY(service.lifecycle.get(id_of(request)));
  return api::refuse(api::not_implemented("SANDBOX::UNSUPPORTED", "Network policies"));
}

}  // namespace

void add_sandbox_routes(http::Router& router, Service& service) {
  mount(router, service, "POST", "/sandboxes", create_sandbox);
  mount(router, service, "GET", "/sandboxes", list_sandboxes);
  mount(router, service, "GET", "/sandboxes/{id}", get_sandbox);
  mount(router, service, "DELETE", "/sandboxes/{id}", delete_sandbox);
  mount(router, service, "PATCH", "/sandboxes/{id}/metadata", patch_metadata);
  mount(router, service, "POST", "/sandboxes/{id}/renew-expiration", renew_expiration);
  mount(router, service, "POST", "/sandboxes/{id}/pause", pause_sandbox);
  mount(router, service, "POST", "/sandboxes/{id}/resume", resume_sandbox);

  mount(router, service, "POST", "/sandboxes/{id}/snapshots", snapshots);
  mount(router, service, "GET", "/snapshots", snapshots);
  mount(router, service, "GET", "/snapshots/{snapshot}", snapshots);
  mount(router, service, "DELETE", "/snapshots/{snapshot}", snapshots);
  for (std::string_view method : {"GET", "PUT", "PATCH", "DELETE"}) {
    mount(router, service, method, "/sandboxes/{id}/networkpolicy", network_policy);
  }
  for (std::string_view method : {"GET", "POST"}) {
    mount(router, service, method, "/pools", pools);
    mount(router, service, method, "/templates", templates);
  }
  for (std::string_view method : {"GET", "PUT", "DELETE"})
    mount(router, service, method, "/pools/{name}", pools);
  for (std::string_view method : {"GET", "DELETE"})
    mount(router, service, method, "/templates/{template}", templates);
}

}  // namespace osb::server
