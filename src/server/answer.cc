#include "server/answer.h"

#include "api/body.h"
#include "api/error_catalogue.h"
#include "base/log.h"
#include "server/caller.h"
#include "server/endpoint_token.h"

namespace osb::server {

Task<api::ApiResult<std::string>> read_body(Request& request) {
  if (request.body == nullptr) co_return std::string();
  if (request.body->length().value_or(0) > api::kMaxJsonBody) {
    co_return api::refuse(api::body_too_large(api::kMaxJsonBody));
  }
  auto body = co_await http::read_all(*request.body, api::kMaxJsonBody);
  if (body) co_return std::move(*body);
  if (body.error().code == Code::too_large) co_return api::refuse(api::body_too_large(api::kMaxJsonBody));
  if (body.error().code == Code::timeout) co_return api::refuse(api::body_too_slow());
  co_return api::refuse(api::malformed_http(body.error().message));
}

Task<> answer(ResponseWriter& response, int status, http::Headers headers, std::string body) {
  auto sent = co_await response.send(status, std::move(headers), std::move(body));
  if (!sent) log::debug("client went away", {{"error", sent.error().message}});
}

Task<> answer_json(ResponseWriter& response, int status, std::string body) {
  co_await answer(response, status, {{"Content-Type", "application/json"}}, std::move(body));
}

Task<> answer_error(const Request& request, ResponseWriter& response, api::ApiError error) {
  http::Headers headers{{"Content-Type", "application/json"}};
  if (error.retry_after_seconds) headers.add("Retry-After", std::to_string(*error.retry_after_seconds));
  if (!error.allow.empty()) headers.add("Allow", error.allow);
  if (error.status >= 500) {
    log::warn("answered an error",
              {{"status", error.status},
               {"code", error.code},
               {"message", error.message},
               {"request", request.head.method + " " + without_token(request.head.path())},
               {"owner", caller_of(request).owner},
               {"request_id", request.request_id}});
  }
  std::string body = api::to_json(error, request.request_id);
  co_await answer(response, error.status, std::move(headers), std::move(body));
}

}  // namespace osb::server
