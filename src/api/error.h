#pragma once

// What a caller of the API gets when something is wrong: a status, a code that programs match, a sentence,
// and where it helps the cause and the remedy. Every answer that is not 2xx is one of these; the catalogue of
// codes is error_catalogue.h.

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::api {

struct ApiError {
  int status = 500;
  std::string code;
  std::string message;
  std::string cause = {}, remedy = {};  // left out when empty
  std::string detail = {};              // JSON, for the answers where clients look for `detail`
  std::optional<int> retry_after_seconds = {};
  std::string allow = {};  // methods, for 405
};

template <class T = void>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> refuse(ApiError error) { return std::unexpected(std::move(error)); }

std::string to_json(const ApiError& error, std::string_view request_id);

}  // namespace osb::api
