#include "api/failure_status.h"
#include "api/sandbox_json.h"
#include "api/snapshots.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using api::on_wire;

const std::string& parameter(const Request& request, const char* name) {
  return request.params.find(name)->second;
}

std::string_view content_type(const Request& request) { return request.head.headers.get("Content-Type"); }

Task<ApiResult<Answer>> create_snapshot(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto name = CO_TRY(api::decode_snapshot(content_type(request), body));
  sandbox::Snapshot made = CO_TRY(on_wire(
      co_await service.snapshots.create(caller_of(request), parameter(request, "id"), std::move(name))));
  Answer answer{.status = 202, .body = "", .headers = {{"Location", "/v1/snapshots/" + made.id}}};
  api::append_snapshot(answer.body, made);
  co_return answer;
}

Task<ApiResult<Answer>> list_snapshots(Service& service, Request& request) {
  sandbox::Principal who = caller_of(request);
  api::SnapshotQuery query = CO_TRY(api::decode_snapshot_query(request.head.query()));
  store::Range range{.limit = query.page_size, .offset = (query.page - 1) * query.page_size};
  auto page = co_await service.store.snapshots(sandbox::Scope::of(who), query.filter, range);
  if (!page) {
    log::error("cannot list snapshots", {{"owner", who.owner}, {"error", page.error().message}});
    co_return api::refuse(api::to_api_error(sandbox::internal_error(page.error())));
  }
  Answer answer{.body = "{\"items\":["};
  for (const sandbox::Snapshot& snapshot : page->snapshots) {
    if (answer.body.back() == '}') answer.body.push_back(',');
    api::append_snapshot(answer.body, snapshot);
  }
  answer.body.append("],");
  api::append_pagination(answer.body, {query.page, query.page_size, page->total});
  answer.body.push_back('}');
  co_return answer;
}

Task<ApiResult<Answer>> get_snapshot(Service& service, Request& request) {
  Answer answer;
  api::append_snapshot(
      answer.body,
      CO_TRY(on_wire(co_await service.snapshots.get(caller_of(request), parameter(request, "snapshot")))));
  co_return answer;
}

Task<ApiResult<Answer>> delete_snapshot(Service& service, Request& request) {
  CO_TRY(on_wire(co_await service.snapshots.remove(caller_of(request), parameter(request, "snapshot"))));
  co_return Answer{.status = 204, .body = ""};
}

Task<ApiResult<Answer>> fork_sandbox(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  int64_t count = CO_TRY(api::decode_fork(content_type(request), body));
  auto turn = CO_TRY(co_await service.creates.enter());
  auto made =
      CO_TRY(on_wire(co_await service.snapshots.fork(caller_of(request), parameter(request, "id"), count)));
  Answer answer{.status = 202, .body = "{\"items\":["};
  for (const sandbox::Sandbox& one : made) {
    if (answer.body.back() == '}') answer.body.push_back(',');
    api::append_sandbox(answer.body, one);
  }
  answer.body.append("]}");
  co_return answer;
}

Task<ApiResult<Answer>> roll_back_sandbox(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  std::string snapshot = CO_TRY(api::decode_rollback(content_type(request), body));
  auto turn = CO_TRY(co_await service.creates.enter());
  Answer answer;
  api::append_sandbox(answer.body, CO_TRY(on_wire(co_await service.snapshots.roll_back(
                                       caller_of(request), parameter(request, "id"), std::move(snapshot)))));
  co_return answer;
}

Task<ApiResult<Answer>> list_changes(Service& service, Request& request) {
  auto changes =
      CO_TRY(on_wire(co_await service.snapshots.changes(caller_of(request), parameter(request, "id"))));
  co_return Answer{.body = api::changes_json(changes)};
}

}  // namespace

void add_snapshot_routes(http::Router& router, Service& service) {
  mount(router, service, "POST", "/sandboxes/{id}/snapshots", create_snapshot);
  mount(router, service, "GET", "/snapshots", list_snapshots);
  mount(router, service, "GET", "/snapshots/{snapshot}", get_snapshot);
  mount(router, service, "DELETE", "/snapshots/{snapshot}", delete_snapshot);
  mount(router, service, "GET", "/sandboxes/{id}/diff", list_changes);
  mount(router, service, "POST", "/sandboxes/{id}/fork", fork_sandbox);
  mount(router, service, "POST", "/sandboxes/{id}/rollback", roll_back_sandbox);
}

}  // namespace osb::server
