#pragma once

// Answers in execd's shapes. Every failure is JSON with a non-empty code and message: one client fails
// without them, another takes an empty error for success. "Empty success" has Content-Length: 0, which yet
// another needs to see.

#include <boost/json/value.hpp>
#include <expected>
#include <string>
#include <string_view>

#include "http/server.h"
#include "json/decode.h"

namespace osb::execd {

namespace codes {
inline constexpr std::string_view kInvalidBody = "INVALID_REQUEST_BODY";
inline constexpr std::string_view kMissingQuery = "MISSING_QUERY";
inline constexpr std::string_view kRuntimeError = "RUNTIME_ERROR";
inline constexpr std::string_view kInvalidFile = "INVALID_FILE";
inline constexpr std::string_view kInvalidFileMetadata = "INVALID_FILE_METADATA";
inline constexpr std::string_view kInvalidFileContent = "INVALID_FILE_CONTENT";
inline constexpr std::string_view kFileNotFound = "FILE_NOT_FOUND";
inline constexpr std::string_view kContextNotFound = "CONTEXT_NOT_FOUND";
inline constexpr std::string_view kNotSupported = "NOT_SUPPORTED";
inline constexpr std::string_view kUnavailable = "SERVICE_UNAVAILABLE";
inline constexpr std::string_view kUnknown = "UNKNOWN";
inline constexpr std::string_view kAlreadyConnected = "ALREADY_CONNECTED";
inline constexpr std::string_view kNotFound = "NOT_FOUND";
inline constexpr std::string_view kBadGateway = "BAD_GATEWAY";
}  // namespace codes

struct ApiError {
  ApiError(int s, std::string_view c, std::string m) : status(s), code(c), message(std::move(m)) {}
  // How file routes answer: a missing file is 404 FILE_NOT_FOUND, everything else 500. Implicit, so that
  // TRY() may pass an Error out of what a file route does.
  ApiError(const Error& error);  // NOLINT(google-explicit-constructor)

  int status;
  std::string_view code;
  std::string message;
};

io::Task<> reply_empty(http::ResponseWriter& response);
io::Task<> reply_json(http::ResponseWriter& response, std::string body, int status = 200);
io::Task<> reply_error(http::ResponseWriter& response, ApiError error);

ApiError bad_request(std::string message, std::string_view code = codes::kInvalidBody);

inline constexpr size_t kMaxJsonBody = 64 << 20;

enum class EmptyBody { invalid, is_object };

// The first JSON value of the body; what follows it is ignored. With EmptyBody::is_object an empty body and
// null are {}. Members whose name equals one of `members` except for case are renamed to it.
io::Task<std::expected<boost::json::value, ApiError>> read_json(
    http::Request& request, EmptyBody empty, std::initializer_list<std::string_view> members = {});

// The first mistake that decoding found, as an answer.
ApiError first_issue(const json::Issues& issues);

}  // namespace osb::execd
