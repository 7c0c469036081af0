#include "api/failure_status.h"
#include "api/pools.h"
#include "server/caller.h"
#include "server/pool_templates.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using api::on_wire;

const std::string& name_of(const Request& request) { return request.params.find("name")->second; }

std::string_view content_type(const Request& request) { return request.head.headers.get("Content-Type"); }

Answer shown(const sandbox::PoolView& view, int status) {
  Answer answer{.status = status, .body = ""};
  api::append_pool(answer.body, view);
  return answer;
}

Task<ApiResult<Answer>> create_pool(Service& service, Request& request) {
  std::string text = CO_TRY(co_await read_body(request));
  api::PoolBody body = CO_TRY(api::decode_pool(content_type(request), text));
  auto shape =
      CO_TRY(check_template(std::move(body.shape), service.config, service.runtimes, service.clock.now()));
  sandbox::Pool row{.name = std::move(body.name), .shape = std::move(body.text), .capacity = body.capacity};
  auto made =
      CO_TRY(on_wire(co_await service.pools.create(caller_of(request), std::move(row), std::move(shape))));
  Answer answer = shown(made, 201);
  answer.headers = {{"Location", "/v1/pools/" + made.pool.name}};
  co_return answer;
}

Task<ApiResult<Answer>> list_pools(Service& service, Request& request) {
  auto views = CO_TRY(on_wire(co_await service.pools.list(caller_of(request))));
  Answer answer{.body = "{\"items\":["};
  for (const sandbox::PoolView& view : views) {
    if (answer.body.back() == '}') answer.body.push_back(',');
    api::append_pool(answer.body, view);
  }
  answer.body.append("]}");
  co_return answer;
}

Task<ApiResult<Answer>> get_pool(Service& service, Request& request) {
  co_return shown(CO_TRY(on_wire(co_await service.pools.get(caller_of(request), name_of(request)))), 200);
}

Task<ApiResult<Answer>> put_pool(Service& service, Request& request) {
  std::string text = CO_TRY(co_await read_body(request));
  auto capacity = CO_TRY(api::decode_pool_capacity(content_type(request), text));
  co_return shown(
      CO_TRY(on_wire(co_await service.pools.resize(caller_of(request), name_of(request), capacity))), 200);
}

Task<ApiResult<Answer>> delete_pool(Service& service, Request& request) {
  CO_TRY(on_wire(co_await service.pools.remove(caller_of(request), name_of(request))));
  co_return Answer{.status = 204, .body = ""};
}

}  // namespace

void add_pool_routes(http::Router& router, Service& service) {
  mount(router, service, "POST", "/pools", create_pool);
  mount(router, service, "GET", "/pools", list_pools);
  mount(router, service, "GET", "/pools/{name}", get_pool);
  mount(router, service, "PUT", "/pools/{name}", put_pool);
  mount(router, service, "DELETE", "/pools/{name}", delete_pool);
}

}  // namespace osb::server
