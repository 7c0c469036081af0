#pragma once

// From failures of the domain to answers of HTTP: the one place that knows which status a kind has.

#include "api/error.h"
#include "sandbox/failure.h"

namespace osb::api {

int status_of(sandbox::Failure::Kind kind);
ApiError to_api_error(sandbox::Failure failure);

// An outcome of the domain as a route passes it on.
template <class T>
ApiResult<T> on_wire(sandbox::Outcome<T> outcome) {
  if (!outcome) return refuse(to_api_error(std::move(outcome.error())));
  if constexpr (!std::is_void_v<T>) return std::move(*outcome);
  return ApiResult<T>();
}

}  // namespace osb::api
