#include "api/failure_status.h"

namespace osb::api {

using Kind = sandbox::Failure::Kind;

int status_of(Kind kind) {
  switch (kind) {
    case Kind::invalid:
    case Kind::unsupported:
      return 400;  // also for an image that is not there: clients do not understand 404 on create
    case Kind::not_found:
      return 404;
    case Kind::wrong_state:
      return 409;
    case Kind::too_many:
      return 429;  // of the statuses for "later", what clients know on create
    case Kind::unavailable:
      return 503;
    case Kind::failed:
      return 500;
  }
  return 500;
}

ApiError to_api_error(sandbox::Failure failure) {
  ApiError error{.status = status_of(failure.kind),
                 .code = std::move(failure.code),
                 .message = std::move(failure.message),
                 .cause = std::move(failure.cause),
                 .remedy = std::move(failure.remedy)};
  if (failure.kind == Kind::too_many || failure.kind == Kind::unavailable) error.retry_after_seconds = 1;
  return error;
}

}  // namespace osb::api
