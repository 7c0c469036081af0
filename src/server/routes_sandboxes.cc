#include <fmt/format.h>

#include <algorithm>

#include "api/changes.h"
#include "api/create_rules.h"
#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/list_query.h"
#include "api/sandbox_json.h"
#include "base/log.h"
#include "base/sha256.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using api::on_wire;

const std::string& id_of(const Request& request) { return request.params.find("id")->second; }

std::string fingerprint_of(std::string_view body) {
  std::string out;
  for (uint8_t byte : sha256_digest(body)) fmt::format_to(std::back_inserter(out), "{:02x}", byte);
  return out;
}

// Of an earlier request with the same key: the sandbox as it is now.
Answer replayed(const sandbox::Sandbox& made) {
  return {.status = 202,
          .body = api::created_json(made, !made.metadata.empty()),
          .headers = {{"Location", "/v1/sandboxes/" + made.id}, {"Idempotency-Replayed", "true"}}};
}

Task<bool> is_gone(Request& request) {
  co_return request.sender != nullptr&& co_await request.sender->gone();
}

Answer made_answer(const sandbox::Sandbox& made, bool with_metadata) {
  return {.status = 202,
          .body = api::created_json(made, with_metadata || !made.metadata.empty()),
          .headers = {{"Location", "/v1/sandboxes/" + made.id}}};
}

Task<ApiResult<Answer>> create_sandbox(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto decoded = CO_TRY(api::decode_create(request.head.headers.get("Content-Type"), body));
  choose_runtime(service.config, decoded);
  auto rules = CO_TRY(create_rules(service.config, service.runtimes, decoded.runtime(), service.clock.now()));
  sandbox::CreateRequest wanted = CO_TRY(api::check_create(std::move(decoded), rules));
  bool with_metadata = wanted.metadata.has_value();
  std::optional<CreateOnce::Guard> alone;
  if (const std::string* key = request.head.headers.find("Idempotency-Key")) {
    CO_TRY(CreateOnce::check_key(*key));
    alone.emplace(co_await service.once.lock(caller_of(request), *key));
    auto earlier = CO_TRY(co_await service.once.find(caller_of(request), *key, fingerprint_of(body)));
    if (earlier.sandbox) co_return replayed(*earlier.sandbox);
    wanted.id = std::move(earlier.id);
  }
  if (!wanted.pool.empty()) {
    if (co_await is_gone(request)) co_return api::refuse(api::caller_gone());
    co_return made_answer(
        CO_TRY(on_wire(co_await service.pools.claim(caller_of(request), std::move(wanted)))), with_metadata);
  }
  if (auto ready = CO_TRY(on_wire(co_await service.pools.take_ready(caller_of(request), wanted))))
    co_return made_answer(*ready, with_metadata);
  auto turn = CO_TRY(co_await service.creates.enter());
  // It may have waited, here or in the listener: nobody would delete what nobody is told of.
  if (co_await is_gone(request)) co_return api::refuse(api::caller_gone());
  Snapshots::Use use;
  if (!wanted.snapshot.empty())
    use = CO_TRY(on_wire(co_await service.snapshots.find_base(caller_of(request), wanted)));
  sandbox::Sandbox made =
      CO_TRY(on_wire(co_await service.lifecycle.create(caller_of(request), std::move(wanted))));
  co_return made_answer(made, with_metadata);
}

Task<ApiResult<Answer>> get_sandbox(Service& service, Request& request) {
  sandbox::SandboxPtr found =
      CO_TRY(on_wire(co_await service.lifecycle.get(caller_of(request), id_of(request))));
  Answer answer;
  answer.body.reserve(640);
  api::append_sandbox(answer.body, *found, service.runtimes.standard().name());
  co_return answer;
}

std::string render_list(Service& service, const store::Page& page, const api::ListQuery& query) {
  std::string out;
  out.reserve(256 + 512 * page.sandboxes.size());
  out = "{\"items\":[";
  for (const sandbox::SandboxPtr& shown : page.sandboxes) {
    if (out.back() == '}') out.push_back(',');
    out.append(service.rendered.of(shown, service.runtimes.standard().name()));
  }
  out.append("],");
  api::append_pagination(out, {query.page, query.page_size, page.total});
  out.push_back('}');
  return out;
}

Task<ApiResult<Answer>> list_sandboxes(Service& service, Request& request) {
  sandbox::Principal who = caller_of(request);
  std::string_view raw_query = request.head.query();
  // As of before the rows are read: what changes meanwhile makes the page an old one.
  auto generation = service.store.generation();
  if (generation) {
    if (const std::string* page = service.lists.find(who.owner, raw_query, *generation))
      co_return Answer{.body = *page};
  }
  api::ListQuery query = CO_TRY(api::decode_list_query(raw_query));
  store::Range range{.limit = query.page_size, .offset = (query.page - 1) * query.page_size};
  auto page = co_await service.store.page(sandbox::Scope::of(who), query.filter, range);
  if (!page) {
    log::error("cannot list sandboxes", {{"owner", who.owner}, {"error", page.error().message}});
    co_return api::refuse(api::to_api_error(sandbox::internal_error(page.error())));
  }
  std::string text = render_list(service, *page, query);
  if (generation) service.lists.put(who.owner, raw_query, *generation, text);
  co_return Answer{.body = std::move(text)};
}

Task<ApiResult<Answer>> delete_sandbox(Service& service, Request& request) {
  CO_TRY(on_wire(co_await service.lifecycle.remove(caller_of(request), id_of(request))));
  co_return Answer{.status = 204, .body = ""};
}

Task<ApiResult<Answer>> patch_metadata(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto patch = CO_TRY(api::decode_metadata_patch(request.head.headers.get("Content-Type"), body));
  sandbox::Sandbox changed = CO_TRY(on_wire(
      co_await service.lifecycle.patch_metadata(caller_of(request), id_of(request), std::move(patch))));
  Answer answer;
  api::append_sandbox(answer.body, changed);
  co_return answer;
}

Task<ApiResult<Answer>> renew_expiration(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  WallTime wanted = CO_TRY(api::decode_renewal(request.head.headers.get("Content-Type"), body));
  WallTime expires =
      CO_TRY(on_wire(co_await service.lifecycle.renew(caller_of(request), id_of(request), wanted)));
  co_return Answer{.body = "{\"expiresAt\":\"" + format_api_time(expires) + "\"}"};
}

// A body is ignored: none is defined, and clients send what they like.
Task<ApiResult<Answer>> pause_sandbox(Service& service, Request& request) {
  CO_TRY(on_wire(co_await service.lifecycle.pause(caller_of(request), id_of(request))));
  co_return Answer{.status = 202, .body = ""};
}

Task<ApiResult<Answer>> resume_sandbox(Service& service, Request& request) {
  CO_TRY(on_wire(co_await service.lifecycle.resume(caller_of(request), id_of(request))));
  co_return Answer{.status = 202, .body = ""};
}

ApiResult<Answer> templates(Service&, Request&) {
  return api::refuse(api::not_implemented("SANDBOX::UNSUPPORTED", "Templates"));
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

  for (std::string_view method : {"GET", "POST"}) mount(router, service, method, "/templates", templates);
  for (std::string_view method : {"GET", "DELETE"})
    mount(router, service, method, "/templates/{template}", templates);
}

}  // namespace osb::server
