// Names that older documents use: stop, contexts of a sandbox, and executing in a context of which only the
// id is known. All of them have another way, by which clients go: DELETE, and execd's own routes behind the
// endpoint.

#include <algorithm>
#include <array>

#include "api/body.h"
#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "http/client.h"
#include "json/decode.h"
#include "json/escape.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/cell_result.h"
#include "server/routes.h"
#include "server/secure_access.h"

namespace osb::server {
namespace {

using api::ApiResult;
using api::on_wire;
using sandbox::SandboxPtr;

constexpr auto kConnectLimit = std::chrono::seconds(10);
constexpr auto kLookLimit = std::chrono::seconds(2);
constexpr auto kMakeLimit = std::chrono::seconds(60);
// How many sandboxes are asked for a context of which only the id is known.
constexpr int64_t kMostAsked = 200;

Task<ApiResult<Answer>> stop_sandbox(Service& service, Request& request) {
  CO_TRY(on_wire(co_await service.lifecycle.remove(caller_of(request), request.params.find("id")->second)));
  co_return Answer{.status = 204, .body = ""};
}

http::RequestHead to_execd(std::string_view method, std::string target) {
  return {
      std::string(method),
      std::move(target),
      true,
      {{"Host", "127.0.0.1:" + std::to_string(runtime::kExecdPort)}, {"Content-Type", "application/json"}}};
}

Task<Result<http::ClientConnection>> connect_execd(Service& service, SandboxPtr row) {
  auto stream = CO_TRY(co_await service.runtimes.of(row->runtime).connect(row->handle, runtime::kExecdPort));
  co_return http::ClientConnection(
      CO_TRY(io::to_socket(std::move(stream), co_await io::asio::this_coro::executor, service.pumps)));
}

Task<Result<http::Response>> ask_execd(Service& service, SandboxPtr row, http::RequestHead head,
                                       std::string body) {
  auto connection =
      CO_TRY(co_await io::with_deadline(kConnectLimit, "connect", connect_execd(service, std::move(row))));
  co_return co_await http::fetch(connection, std::move(head), std::move(body), api::kMaxJsonBody);
}

api::ApiError no_answer(const std::string& id, const Error& error) {
  return error.code == Code::timeout ? api::backend_timeout(runtime::kExecdPort)
                                     : api::backend_connection_failed(id, runtime::kExecdPort, error);
}

// execd says 500 of a language that the sandbox does not have, for the sake of its own clients. Here it is
// what it is: a request that cannot be met.
int status_of(const http::ResponseHead& head) { return head.status == 500 ? 400 : head.status; }

Task<ApiResult<Answer>> create_context(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  std::string id = request.params.find("id")->second;
  auto reached = CO_TRY(on_wire(co_await service.lifecycle.reach(caller_of(request), id)));
  CO_TRY(check_secure_access(service, request, *reached.row));
  auto made = co_await io::with_deadline(
      kMakeLimit, "code context",
      ask_execd(service, reached.row, to_execd("POST", "/code/context"), std::move(body)));
  if (!made) co_return api::refuse(no_answer(id, made.error()));
  co_return Answer{.status = status_of(made->head), .body = std::move(made->body)};
}

struct Execute {
  std::string context, sandbox, code;
};

// Ids of contexts go into a path: nothing but what ids are made of.
bool is_plain_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::ranges::all_of(id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
}

ApiResult<Execute> decode_execute(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(api::parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  Execute out{.context = root.any_of({"contextId", "context_id"}).required_string(),
              .sandbox = root.any_of({"sandboxId", "sandbox_id"}).string().value_or(""),
              .code = root["code"].required_string()};
  if (!issues.empty()) return api::refuse(api::invalid_request(issues));
  return out;
}

Task<Result<bool>> has_context(Service& service, SandboxPtr row, std::string context) {
  auto seen = CO_TRY(co_await io::with_deadline(
      kLookLimit, "look for a context",
      ask_execd(service, std::move(row), to_execd("GET", "/code/contexts/" + context), "")));
  co_return seen.head.status == 200;
}

// The newest first: whoever executes has most likely just made it. None is woken to be asked.
Task<ApiResult<Lifecycle::Reached>> find_context(Service& service, sandbox::Principal who, Execute wanted) {
  if (!wanted.sandbox.empty()) co_return on_wire(co_await service.lifecycle.reach(who, wanted.sandbox));
  if (is_plain_id(wanted.context)) {
    sandbox::Filter running{.states = {{sandbox::State::running}}};
    auto page = co_await service.store.page(sandbox::Scope::of(who), running, {.limit = kMostAsked});
    if (!page) co_return api::refuse(api::to_api_error(sandbox::internal_error(page.error())));
    for (const SandboxPtr& row : page->sandboxes) {
      auto has = co_await has_context(service, row, wanted.context);
      if (has && *has) co_return on_wire(co_await service.lifecycle.reach(who, row->id));
    }
  }
  co_return api::refuse(api::context_not_found());
}

Task<ApiResult<Answer>> run_cell(Service& service, SandboxPtr row, Execute wanted) {
  auto connection = co_await io::with_deadline(kConnectLimit, "connect", connect_execd(service, row));
  if (!connection) co_return api::refuse(no_answer(row->id, connection.error()));
  std::string body = "{\"context\":{\"id\":";
  json::append_string(body, wanted.context);
  body.append("},\"code\":");
  json::append_string(body, wanted.code);
  body.push_back('}');
  auto sent = co_await connection->send_head(to_execd("POST", "/code"), body.size());
  if (sent) sent = co_await connection->write(body);
  if (sent) sent = co_await connection->finish();
  if (!sent) co_return api::refuse(api::backend_response_failed(runtime::kExecdPort, sent.error()));
  auto head = co_await connection->read_head();
  if (!head) co_return api::refuse(api::backend_response_failed(runtime::kExecdPort, head.error()));
  if (head->status != 200) {
    auto why = co_await http::read_all(connection->body(), api::kMaxJsonBody);
    // execd's word for a context that it does not know.
    if (why && why->find("CONTEXT_NOT_FOUND") != std::string::npos)
      co_return api::refuse(api::context_not_found());
    co_return Answer{.status = status_of(*head), .body = why.value_or("{}")};
  }
  CellResult result;
  std::array<char, 16384> buffer;
  while (true) {
    auto got = co_await connection->body().read_some(buffer);
    if (!got) co_return api::refuse(api::backend_response_failed(runtime::kExecdPort, got.error()));
    if (*got == 0) break;
    auto fed = result.feed({buffer.data(), *got});
    if (!fed) co_return api::refuse(api::backend_response_failed(runtime::kExecdPort, fed.error()));
  }
  if (!result.complete())
    co_return api::refuse(api::backend_response_failed(
        runtime::kExecdPort, {Code::unavailable, 0, "the stream ended before the cell did"}));
  co_return Answer{.body = result.to_json()};
}

Task<ApiResult<Execute>> read_execute(Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  co_return decode_execute(request.head.headers.get("Content-Type"), body);
}

Task<ApiResult<Answer>> execute(Service& service, sandbox::Principal who, Execute wanted) {
  auto reached = CO_TRY(co_await find_context(service, std::move(who), wanted));
  co_return co_await run_cell(service, reached.row, std::move(wanted));
}

Task<> execute_into(Service& service, sandbox::Principal who, Execute wanted,
                    std::optional<ApiResult<Answer>>& result) {
  result = co_await execute(service, std::move(who), std::move(wanted));
}

// A cell may take as long as it likes, but not without somebody who waits for it: without its connection
// execd keeps nothing of it.
Task<> execute_in_context(Service& service, Request& request, ResponseWriter& response) {
  auto wanted = co_await read_execute(request);
  if (!wanted) co_return co_await answer_error(request, response, std::move(wanted.error()));
  std::optional<ApiResult<Answer>> result;
  co_await io::race(execute_into(service, caller_of(request), std::move(*wanted), result),
                    response.wait_closed());
  if (!result) co_return response.abort();
  if (!*result) co_return co_await answer_error(request, response, std::move(result->error()));
  co_await answer_json(response, (*result)->status, std::move((*result)->body));
}

}  // namespace

void add_alias_routes(http::Router& router, Service& service) {
  mount(router, service, "POST", "/sandboxes/{id}/stop", stop_sandbox);
  mount(router, service, "POST", "/sandboxes/{id}/contexts", create_context);
  for (std::string prefix : {"/v1", ""}) {
    router.add("POST", prefix + "/contexts/execute", [&service](Request& request, ResponseWriter& response) {
      return execute_in_context(service, request, response);
    });
  }
}

}  // namespace osb::server
