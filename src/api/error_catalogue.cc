#include "api/error_catalogue.h"

#include <fmt/format.h>

#include "base/shown.h"
#include "base/strings.h"
#include "json/escape.h"

namespace osb::api {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  json::append_string(out, text);
  return out;
}

// {"type","loc","msg"}; never the input itself, which may hold passwords.
void append_issue(std::string& out, const json::Issue& issue) {
  out.append("{\"type\":").append(quoted(issue.type)).append(",\"loc\":[");
  for (size_t i = 0; i < issue.path.size(); ++i) {
    if (i > 0) out.push_back(',');
    if (const int64_t* index = std::get_if<int64_t>(&issue.path[i])) {
      out.append(std::to_string(*index));
    } else {
      json::append_string(out, std::get<std::string>(issue.path[i]));
    }
  }
  out.append("],\"msg\":").append(quoted(issue.message)).append("}");
}

ApiError unprocessable(std::string message, std::string detail) {
  return {.status = 422,
          .code = "SANDBOX::INVALID_REQUEST",
          .message = std::move(message),
          .detail = std::move(detail)};
}

}  // namespace

ApiError invalid_request(const json::Issues& issues) {
  std::string detail = "[", message;
  for (const json::Issue& issue : issues.list()) {
    if (detail.size() > 1) detail.push_back(',');
    append_issue(detail, issue);
    if (message.size() < 400) {
      if (!message.empty()) message.append("; ");
      message.append(json::to_string(issue.path)).append(": ").append(issue.message);
    }
  }
  return unprocessable(std::move(message), detail + "]");
}

ApiError invalid_request(json::Issue issue) {
  json::Issues issues;
  issues.add(std::move(issue));
  return invalid_request(issues);
}

ApiError invalid_json(const Error& parse_error) {
  int64_t position = 0;
  if (size_t at = parse_error.message.rfind(' '); at != std::string::npos) {
    position = parse_number<int64_t>(std::string_view(parse_error.message).substr(at + 1)).value_or(0);
  }
  return invalid_request(
      {"json_invalid", {std::string("body"), position}, "not valid JSON: " + parse_error.message});
}

ApiError not_json() {
  ApiError error = invalid_request({"model_attributes_type", {std::string("body")}, "the body must be JSON"});
  error.cause = "the Content-Type of the request is not a JSON type";
  error.remedy = "send Content-Type: application/json";
  return error;
}

ApiError body_too_large(size_t limit) {
  return {.status = 413,
          .code = "SANDBOX::REQUEST_TOO_LARGE",
          .message = fmt::format("The request body is larger than {} bytes.", limit),
          .remedy = "send files through the sandbox's own file API, not in the create request"};
}

ApiError no_such_route() {
  return {.status = 404,
          .code = "GENERAL::NOT_FOUND",
          .message = "This server has no such path.",
          .detail = "\"Not Found\""};
}

ApiError method_not_allowed(std::string allow) {
  return {.status = 405,
          .code = "GENERAL::METHOD_NOT_ALLOWED",
          .message = fmt::format("This method is not served on this path; it serves {}.", allow),
          .detail = "\"Method Not Allowed\"",
          .allow = std::move(allow)};
}

ApiError malformed_http(std::string_view why) {
  return {
      .status = 400, .code = "GENERAL::BAD_REQUEST", .message = fmt::format("Malformed request: {}", why)};
}

ApiError body_too_slow() {
  return {.status = 408,
          .code = "GENERAL::REQUEST_TIMEOUT",
          .message = "The body of the request did not arrive in time."};
}

ApiError missing_api_key() {
  return {.status = 401,
          .code = "MISSING_API_KEY",
          .message = "This server needs an API key.",
          .remedy = "send it in the OPEN-SANDBOX-API-KEY header"};
}

ApiError missing_endpoint_token() {
  return {.status = 401,
          .code = "MISSING_API_KEY",
          .message = "This server needs an API key, or the token of an endpoint.",
          .remedy =
              "use the endpoint as GET /sandboxes/{id}/endpoints/{port} answers it, or send the key in "
              "the OPEN-SANDBOX-API-KEY header"};
}

ApiError secure_access_needed() {
  return {
      .status = 401,
      .code = "MISSING_OR_INVALID_SECURE_ACCESS",
      .message = "This sandbox was made with secureAccess, and the request does not have its access token.",
      .remedy =
          "send the headers that GET /sandboxes/{id}/endpoints/{port} answers with every request, or "
          "ask there for a signed endpoint (expires)"};
}

ApiError wrong_signature() {
  return {.status = 401,
          .code = "INVALID_ENDPOINT_SIGNATURE",
          .message = "The signature in the path is not one of this server for this sandbox and port.",
          .remedy = "use the endpoint as GET /sandboxes/{id}/endpoints/{port}?expires=... answered it"};
}

ApiError signature_expired() {
  return {.status = 401,
          .code = "ENDPOINT_SIGNATURE_EXPIRED",
          .message = "The time of this signed endpoint is over.",
          .remedy = "ask GET /sandboxes/{id}/endpoints/{port}?expires=... for another one"};
}

ApiError no_such_preview() {
  return {.status = 404,
          .code = "PREVIEW_NOT_FOUND",
          .message = "There is no preview of this name.",
          .remedy = "ask GET /sandboxes/{id}/endpoints/{port}?preview=true for the name of one"};
}

ApiError invalid_api_key() {
  return {.status = 401,
          .code = "INVALID_API_KEY",
          .message = "The API key is not the one of this server.",
          .remedy = "compare it with server.api_key or OPENSANDBOX_SERVER_API_KEY of the server"};
}

ApiError host_not_allowed() {
  return {
      .status = 403,
      .code = "SANDBOX::HOST_NOT_ALLOWED",
      .message = "The Host of the request is not a name of this server.",
      .cause =
          "a server without an API key answers only to loopback names, so that a web page cannot drive it",
      .remedy = "use localhost or 127.0.0.1, set server.eip to this name, or set server.api_key"};
}

ApiError origin_not_allowed(std::string_view whose) {
  return {.status = 403,
          .code = "SANDBOX::ORIGIN_NOT_ALLOWED",
          .message = fmt::format("Requests from {} are refused.", whose),
          .cause = "a server without an API key does not serve web pages of other origins",
          .remedy = "set server.api_key, or list the origin in server.cors_origins"};
}

ApiError service_worker_refused() {
  return {.status = 403,
          .code = "SANDBOX::SERVICE_WORKER_REFUSED",
          .message = "Service workers are not served.",
          .cause = "pages of all sandboxes share this server's origin, and a worker outlives the page"};
}

ApiError invalid_parameter(std::string_view field, std::string why) {
  return {.status = 400,
          .code = "SANDBOX::INVALID_PARAMETER",
          .message = fmt::format("{}: {}", shown(field), why)};
}

ApiError unsupported(std::string_view field, std::string why) {
  return {.status = 400,
          .code = "SANDBOX::UNSUPPORTED",
          .message = fmt::format("{}: {}", shown(field), why),
          .remedy = fmt::format("leave {} out of the request", shown(field))};
}

ApiError not_implemented(std::string_view code, std::string what) {
  return {.status = 501,
          .code = std::string(code),
          .message = fmt::format("{} are not offered by this server.", what)};
}

ApiError reserved_label(std::string_view key) {
  return {
      .status = 400,
      .code = "INVALID_METADATA_LABEL",
      .message = fmt::format("metadata '{}': keys that start with opensandbox.io/ are reserved", shown(key))};
}

ApiError invalid_metadata_filter() {
  return {.status = 400,
          .code = "INVALID_METADATA_FORMAT",
          .message = "The metadata filter is not of the form key=value&key2=value2.",
          .remedy = "encode the whole filter as one query parameter: metadata=key%3Dvalue"};
}

ApiError invalid_scope(std::string_view known) {
  return {.status = 400,
          .code = "DIAGNOSTICS_SCOPE_UNSUPPORTED",
          .message = fmt::format("This scope is not known here; use {}", known)};
}

ApiError key_reused(std::string_view why) {
  return {.status = 409,
          .code = "SANDBOX::IDEMPOTENCY_KEY_REUSED",
          .message = fmt::format("This Idempotency-Key cannot be used again: {}.", why),
          .remedy = "send a new key with every create that is meant to make another sandbox"};
}

ApiError overloaded(std::string why) {
  return {.status = 503, .code = "SANDBOX::OVERLOADED", .message = std::move(why), .retry_after_seconds = 1};
}

ApiError too_much_traffic(int64_t most) {
  ApiError error = overloaded(fmt::format(
      "There are {} requests and streams to this sandbox already, and no more are let through.", most));
  error.remedy =
      "end some of them, or try again after the time in Retry-After; proxy.max_in_flight_per_sandbox is the "
      "limit";
  return error;
}

ApiError too_many_followers() {
  ApiError error = overloaded("Too many requests wait for changes of sandboxes.");
  error.remedy = "try again after the time in Retry-After, or ask GET /sandboxes/{id} from time to time";
  return error;
}

ApiError caller_gone() {
  return {.status = 400,
          .code = "GENERAL::BAD_REQUEST",
          .message = "The connection was closed before the sandbox was made; nothing was made.",
          .remedy = "keep the connection open until the answer has come"};
}

ApiError invalid_port() {
  return {.status = 400,
          .code = "SANDBOX::INVALID_PORT",
          .message = "What the path names is not a port; ports are 1 to 65535."};
}

ApiError never_healthy(std::string_view id, std::string_view state, std::string_view message,
                       std::string_view last_output) {
  return {.status = 403,
          .code = "SANDBOX::NOT_RUNNING",
          .message = fmt::format("Sandbox {} is {}: {}{}{}", shown(id), state, message,
                                 last_output.empty() ? "" : "; its last output:\n", last_output)};
}

ApiError context_not_found() {
  return {.status = 404,
          .code = "SANDBOX::CONTEXT_NOT_FOUND",
          .message = "No running sandbox has a code context of this id.",
          .remedy = "make one with POST /sandboxes/{id}/contexts, or name its sandbox in sandboxId"};
}

ApiError backend_connection_failed(std::string_view id, int port, const Error& error) {
  return {.status = 502,
          .code = "BACKEND_CONNECTION_FAILED",
          .message = fmt::format("Nothing answers on port {} of sandbox {}.", port, shown(id)),
          .cause = error.message,
          .remedy = "start a server in the sandbox that listens on this port, on 127.0.0.1 or all addresses"};
}

ApiError no_egress() {
  return {.status = 502,
          .code = "BACKEND_CONNECTION_FAILED",
          .message =
              "This sandbox has no egress at this address: it has no network, its sidecar does not answer, "
              "or it has ended.",
          .remedy =
              "ask at the endpoint of port 18080; a sandbox has a network when the server has egress.enabled "
              "= true, "
              "unless sandbox.allow_network is false or it was made by an older server; a container has it "
              "when it was "
              "created with networkPolicy"};
}

ApiError egress_ended(std::string_view why) {
  return {.status = 502,
          .code = "BACKEND_CONNECTION_FAILED",
          .message = fmt::format("This sandbox has no egress any more: {}.", why),
          .remedy = "make the sandbox anew; its files can be had until then"};
}

ApiError upgrade_refused() {
  return {.status = 400,
          .code = "GENERAL::UNKNOWN_ERROR",
          .message = "The request asks for a WebSocket but is not a WebSocket handshake.",
          .remedy = "use a WebSocket client, or leave out the Upgrade field"};
}

ApiError backend_timeout(int port) {
  return {.status = 504,
          .code = "BACKEND_TIMEOUT",
          .message = fmt::format("The program on port {} of the sandbox did not answer in time.", port)};
}

ApiError backend_response_failed(int port, const Error& error) {
  return {.status = 502,
          .code = "BACKEND_RESPONSE_FAILED",
          .message = fmt::format(
              "The program on port {} of the sandbox broke off or sent no valid HTTP answer.", port),
          .cause = error.message};
}

}  // namespace osb::api
