// POST /images/commit: a sandbox or a snapshot of the caller's becomes an image.

#include <boost/json.hpp>

#include "api/commit_request.h"
#include "api/failure_status.h"
#include "json/decode.h"
#include "server/caller.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;

Task<ApiResult<Answer>> commit_image(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto wanted = CO_TRY(api::decode_commit(request.head.headers.get("Content-Type"), body));
  runtime::ImageCommit what{.snapshot = "",
                            .base = "",
                            .owner = "",
                            .name = wanted.name,
                            .env = std::move(wanted.env),
                            .labels = std::move(wanted.labels),
                            .ports = std::move(wanted.ports),
                            .user = std::move(wanted.user),
                            .workdir = std::move(wanted.workdir),
                            .entrypoint = std::move(wanted.entrypoint),
                            .cmd = std::move(wanted.cmd)};
  Snapshots::CommitSource source{std::move(wanted.sandbox), std::move(wanted.snapshot)};
  auto id = CO_TRY(api::on_wire(
      co_await service.snapshots.commit(caller_of(request), std::move(source), std::move(what))));
  namespace bj = json::bj;
  co_return Answer{.status = 201, .body = json::print(bj::object{{"id", id}, {"name", wanted.name}})};
}

}  // namespace

void add_commit_routes(http::Router& router, Service& service) {
  mount(router, service, "POST", "/images/commit", commit_image);
}

}  // namespace osb::server
