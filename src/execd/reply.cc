#include "execd/reply.h"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/strings.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::execd {
namespace bj = boost::json;

io::Task<> reply_empty(http::ResponseWriter& response) { co_await response.send(200, {}, ""); }

io::Task<> reply_json(http::ResponseWriter& response, std::string body, int status) {
  co_await response.send(status, {{"Content-Type", "application/json; charset=utf-8"}}, std::move(body));
}

io::Task<> reply_error(http::ResponseWriter& response, ApiError error) {
  std::string body = "{\"code\":";
  json::append_string(body, error.code);
  body += ",\"message\":";
  json::append_string(body, error.message.empty() ? std::string_view("unknown error") : error.message);
  body += "}";
  co_await reply_json(response, std::move(body), error.status);
}

ApiError::ApiError(const Error& error) : status(500), code(codes::kRuntimeError), message(error.message) {
  if (error.sys_errno != ENOENT && (error.sys_errno != 0 || error.code != Code::not_found)) return;
  status = 404;
  code = codes::kFileNotFound;
}

ApiError first_issue(const json::Issues& issues) {
  const json::Issue& issue = issues.list().front();
  return bad_request(json::to_string(issue.path) + ": " + issue.message);
}

ApiError bad_request(std::string message, std::string_view code) { return {400, code, std::move(message)}; }

namespace {

void rename_members(bj::object& object, std::initializer_list<std::string_view> members) {
  for (std::string_view wanted : members) {
    if (object.contains(wanted)) continue;
    for (auto& member : object) {
      if (!iequals(member.key(), wanted)) continue;
      bj::value value = std::move(member.value());
      object.erase(member.key());
      object.emplace(wanted, std::move(value));
      break;
    }
  }
}

}  // namespace

io::Task<std::expected<bj::value, ApiError>> read_json(http::Request& request, EmptyBody empty,
                                                       std::initializer_list<std::string_view> members) {
  std::vector<std::string_view> names(members);  // the list itself does not outlive the first suspension
  auto text = co_await http::read_all(*request.body, kMaxJsonBody);
  if (!text) {
    int status = text.error().code == Code::too_large ? 413 : 400;
    co_return std::unexpected(ApiError{status, codes::kInvalidBody, text.error().message});
  }
  if (empty == EmptyBody::is_object && trim(*text).empty()) co_return bj::value(bj::object());
  auto value = json::parse_first(*text);
  if (!value) co_return std::unexpected(bad_request("the request body is no JSON: " + value.error().message));
  if (empty == EmptyBody::is_object && value->is_null()) co_return bj::value(bj::object());
  if (value->is_object()) {
    for (std::string_view name : names) rename_members(value->as_object(), {name});
  }
  co_return std::move(*value);
}

}  // namespace osb::execd
