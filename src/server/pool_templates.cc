#include "server/pool_templates.h"

#include <boost/json.hpp>

#include "api/pools.h"
#include "json/decode.h"
#include "server/routes.h"

namespace osb::server {

api::ApiResult<sandbox::CreateRequest> check_template(api::CreateBody body, const Config& config,
                                                      runtime::Runtimes& runtimes, WallTime now) {
  choose_runtime(config, body);
  auto rules = TRY(create_rules(config, runtimes, body.runtime(), now));
  auto request = TRY(api::check_create(std::move(body), rules));
  request.timeout.reset();  // of a default; each claim has its own
  return request;
}

sandbox::Outcome<sandbox::CreateRequest> read_template(const std::string& text, const Config& config,
                                                       runtime::Runtimes& runtimes, WallTime now) {
  auto body = api::decode_stored_template(text);
  auto request = body ? check_template(std::move(*body), config, runtimes, now)
                      : api::ApiResult<sandbox::CreateRequest>(std::unexpected(std::move(body.error())));
  if (request) return std::move(*request);
  return sandbox::refuse({.kind = sandbox::Failure::Kind::invalid,
                          .code = request.error().code,
                          .message = "the template cannot be used any more: " + request.error().message});
}

std::string own_template(const std::string& image, const std::map<std::string, std::string>& limits) {
  boost::json::object texts;
  for (const auto& [name, value] : limits) texts[name] = value;
  return json::print(boost::json::object{{"image", boost::json::object{{"uri", image}}},
                                         {"resourceLimits", std::move(texts)}});
}

}  // namespace osb::server
