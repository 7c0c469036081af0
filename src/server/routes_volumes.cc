#include "api/failure_status.h"
#include "api/volume_json.h"
#include "api/volumes.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "sandbox/volume_failures.h"
#include "server/caller.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

std::unexpected<api::ApiError> failed(const char* what, const Error& error) {
  log::error(what, {{"error", error.message}});
  return api::refuse(api::to_api_error(sandbox::internal_error(error)));
}

Task<ApiResult<Answer>> list_volumes(Service& service, Request& request) {
  auto found = co_await service.runtimes.standard().list_volumes(caller_of(request).owner);
  if (!found) co_return failed("cannot list volumes", found.error());
  co_return Answer{.body = api::volumes_json(*found)};
}

Task<ApiResult<Answer>> delete_volume(Service& service, Request& request) {
  const std::string& name = request.params.find("name")->second;
  // What cannot be a name is none: nobody has to be asked.
  auto removed = api::is_claim_name(name)
                     ? co_await service.runtimes.standard().remove_volume(caller_of(request).owner, name)
                     : Result<void>(fail(Code::not_found, "not a name"));
  if (removed) co_return Answer{.status = 204, .body = ""};
  if (removed.error().code == Code::not_found)
    co_return api::refuse(api::to_api_error(sandbox::volume_not_found(name)));
  if (removed.error().code == Code::wrong_state)
    co_return api::refuse(api::to_api_error(sandbox::volume_in_use(name, removed.error().message)));
  co_return failed("cannot remove a volume", removed.error());
}

}  // namespace

void add_volume_routes(http::Router& router, Service& service) {
  mount(router, service, "GET", "/volumes", list_volumes);
  mount(router, service, "DELETE", "/volumes/{name}", delete_volume);
}

}  // namespace osb::server
