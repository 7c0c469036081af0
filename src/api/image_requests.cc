#include "api/image_requests.h"

#include "api/body.h"
#include "api/error_catalogue.h"
#include "base/strings.h"

namespace osb::api {

ApiResult<PullBody> decode_pull(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  PullBody out;
  out.image = trim(root["image"].required_string());
  if (out.image.find('\0') != out.image.npos) complain_value(root["image"], "must not contain NUL");
  if (json::Field auth = root["auth"]; auth.present())
    out.auth = sandbox::ImageAuth{auth["username"].required_string(), auth["password"].required_string()};
  if (!issues.empty()) return refuse(invalid_request(issues));
  return out;
}

ApiResult<PushBody> decode_push(std::string_view content_type, std::string_view body) {
  boost::json::value value = TRY(parse_body(content_type, body));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "body");
  PushBody out;
  out.image = trim(root["image"].required_string());
  if (out.image.find('\0') != out.image.npos) complain_value(root["image"], "must not contain NUL");
  out.target = trim(root["as"].string().value_or(""));
  if (out.target.find('\0') != out.target.npos) complain_value(root["as"], "must not contain NUL");
  if (json::Field auth = root["auth"]; auth.present())
    out.auth = sandbox::ImageAuth{auth["username"].required_string(), auth["password"].required_string()};
  if (!issues.empty()) return refuse(invalid_request(issues));
  return out;
}

}  // namespace osb::api
