// Images of the server to registries: those of its store, and snapshots of the caller's.

#include <boost/json.hpp>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/image_requests.h"
#include "json/decode.h"
#include "runtime/image_library.h"
#include "sandbox/failures.h"
#include "sandbox/snapshot.h"
#include "server/caller.h"
#include "server/image_keeper.h"
#include "server/routes.h"

namespace osb::server {
namespace {

namespace bj = json::bj;
using api::ApiResult;
using sandbox::Failure;

// How long a request waits for the end of a push before it says how far that is.
constexpr io::Duration kPushHeld = std::chrono::milliseconds(500);

Failure push_failure(const Error& error) {
  using Kind = Failure::Kind;
  switch (error.code) {
    case Code::unauthenticated:
      return {.kind = Kind::invalid,
              .code = "IMAGE::UNAUTHORIZED",
              .message = "The registry does not take the image from this caller: " + error.message,
              .cause = error.message,
              .remedy = "check the name, and the username and password in auth"};
    case Code::unavailable:
    case Code::timeout:
    case Code::permission_denied:
      return {.kind = Kind::failed,
              .code = "IMAGE::UNREACHABLE",
              .message = "The registry cannot be reached: " + error.message,
              .cause = error.message,
              .remedy = "try again: what has arrived is not sent again"};
    case Code::corrupt:
      return {.kind = Kind::failed,
              .code = "IMAGE::INVALID",
              .message = "The registry does not accept the image: " + error.message,
              .cause = error.message,
              .remedy = "try again, or push it under another name"};
    case Code::unsupported:
    case Code::too_large:
      return {.kind = Kind::invalid, .code = "SANDBOX::UNSUPPORTED", .message = error.message};
    case Code::not_found:
    case Code::invalid_argument:
      return {.kind = Kind::invalid, .code = "IMAGE::NOT_FOUND", .message = error.message};
    case Code::wrong_state:
      return {.kind = Kind::not_found, .code = "IMAGE::NOT_FOUND", .message = error.message};
    default:
      return sandbox::internal_error(error);
  }
}

// What a request is about. Snapshots are their owners'.
Task<ApiResult<runtime::PushRequest>> request_of(Service& service, sandbox::Principal who,
                                                 api::PushBody body) {
  runtime::PushRequest out{
      .owner = who.owner, .image = std::move(body.image), .target = std::move(body.target)};
  // The passwords of the host open its operator's repositories: they serve whoever has the operator's key.
  out.own_logins = who.owner == sandbox::kDefaultOwner;
  if (body.auth) out.auth = runtime::Credentials{body.auth->username, body.auth->password};
  std::string id(sandbox::snapshot_of_image(out.image));
  if (id.empty()) co_return out;
  auto snapshot = CO_TRY(api::on_wire(co_await service.snapshots.get(std::move(who), id)));
  if (snapshot.status.state != sandbox::SnapshotState::ready) {
    co_return api::refuse(api::to_api_error(
        sandbox::snapshot_not_ready(id, sandbox::to_string(snapshot.status.state), snapshot.status.message)));
  }
  if (out.target.empty()) co_return api::refuse(api::invalid_parameter("as", "is required for a snapshot"));
  out.snapshot = std::move(id);
  co_return out;
}

Task<ApiResult<Answer>> push_image(Service& service, Request& request) {
  std::string text = CO_TRY(co_await read_body(request));
  auto body = CO_TRY(api::decode_push(request.head.headers.get("Content-Type"), text));
  runtime::ImageLibrary* library = CO_TRY(library_of(service.runtimes.standard()));
  auto wanted = CO_TRY(co_await request_of(service, caller_of(request), std::move(body)));
  auto push = library->push(wanted);
  if (!push) {
    Failure failure = push_failure(push.error());
    if (push.error().code == Code::not_found) failure.kind = Failure::Kind::not_found;
    co_return api::refuse(api::to_api_error(failure));
  }
  runtime::PullPtr state = *push;
  if (!state->done.is_set()) co_await io::race(state->done.wait(), io::sleep_for(kPushHeld));
  bool done = state->done.is_set();
  if (done && !state->outcome) co_return api::refuse(api::to_api_error(push_failure(state->outcome.error())));
  const runtime::PullProgress& progress = state->progress;
  bj::object out{{"name", state->name},
                 {"done", done},
                 {"uploaded", progress.downloaded},
                 {"total", progress.total},
                 {"packed", progress.unpacked},
                 {"layers", progress.layers},
                 {"message", done ? "there" : to_push_text(progress)}};
  if (done) out["digest"] = "sha256:" + *state->outcome;
  co_return Answer{.status = done ? 200 : 202, .body = json::print(out)};
}

}  // namespace

void add_push_routes(http::Router& router, Service& service) {
  mount(router, service, "POST", "/images/push", push_image);
}

}  // namespace osb::server
