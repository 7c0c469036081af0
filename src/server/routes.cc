#include "server/routes.h"

#include "api/error_catalogue.h"
#include "base/strings.h"

namespace osb::server {
namespace {

Task<> reply(Request& request, ResponseWriter& response, api::ApiResult<Answer> result) {
  if (!result) {
    co_await answer_error(request, response, std::move(result.error()));
    co_return;
  }
  http::Headers headers = std::move(result->headers);
  if (!result->body.empty()) headers.add("Content-Type", std::move(result->content_type));
  co_await answer(response, result->status, std::move(headers), std::move(result->body));
}

Task<> run_action(Action action, Service& service, Request& request, ResponseWriter& response) {
  auto result = co_await action(service, request);
  co_await reply(request, response, std::move(result));
}

http::Handler bind(Service& service, Action action) {
  return [&service, action](Request& request, ResponseWriter& response) {
    return run_action(action, service, request, response);
  };
}

http::Handler bind(Service& service, PlainAction action) {
  return [&service, action](Request& request, ResponseWriter& response) {
    return reply(request, response, action(service, request));
  };
}

template <class A>
void mount_both(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
                A action) {
  router.add(std::string(method), "/v1" + std::string(pattern), bind(service, action));
  router.add(std::string(method), std::string(pattern), bind(service, action));
}

}  // namespace

void mount(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
           Action action) {
  mount_both(router, service, method, pattern, action);
}

void mount(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
           PlainAction action) {
  mount_both(router, service, method, pattern, action);
}

void mount_once(http::Router& router, Service& service, std::string_view method, std::string_view pattern,
                Action action) {
  router.add(std::string(method), std::string(pattern), bind(service, action));
}

std::string_view mount_prefix(const Request& request) {
  return request.head.path().starts_with("/v1/") ? "/v1" : "";
}

api::ApiResult<uint16_t> port_parameter(const Request& request) {
  const std::string& text = request.params.find("port")->second;
  std::string_view digits = text;
  if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) {
    return api::refuse(api::invalid_request(
        {"int_parsing", {std::string("path"), std::string("port")}, "must be an integer"}));
  }
  auto number = parse_number<int64_t>(text.starts_with('+') ? digits : std::string_view(text));
  if (!number || *number < 1 || *number > 65535) return api::refuse(api::invalid_port());
  return static_cast<uint16_t>(*number);
}

}  // namespace osb::server
