#pragma once

// Every code that HTTP and the form of a request have, each made in one place so that status, code and
// wording cannot drift apart. What can go wrong with sandboxes themselves is in sandbox/failures.h.

#include "api/error.h"
#include "json/decode.h"

namespace osb::api {

// Requests that mean nothing.
ApiError invalid_request(const json::Issues& issues);  // 422, one entry of `detail` per issue
ApiError invalid_request(json::Issue issue);
ApiError invalid_json(const Error& parse_error);  // 422, loc is the byte position
ApiError not_json();                              // 422, wrong Content-Type
ApiError body_too_large(size_t limit);
ApiError no_such_route();
ApiError method_not_allowed(std::string allow);
ApiError malformed_http(std::string_view why);
ApiError body_too_slow();  // 408

// Requests that are refused.
ApiError missing_api_key();
ApiError missing_endpoint_token();  // the same, for a path to a port of a sandbox
ApiError secure_access_needed();
ApiError wrong_signature();
ApiError signature_expired();
ApiError no_such_preview();
ApiError invalid_api_key();
ApiError host_not_allowed();
ApiError origin_not_allowed(std::string_view whose);  // pages
ApiError service_worker_refused();
ApiError invalid_parameter(std::string_view field, std::string why);  // 400
ApiError unsupported(std::string_view field, std::string why);        // 400, a part this server does not have
ApiError not_implemented(std::string_view code, std::string what);    // 501
ApiError reserved_label(std::string_view key);  // in a patch; without the SANDBOX:: prefix
ApiError invalid_metadata_filter();
ApiError invalid_scope(std::string_view known);

ApiError key_reused(std::string_view why);  // 409, of an Idempotency-Key
ApiError overloaded(std::string why);
ApiError too_much_traffic(int64_t most);
ApiError too_many_followers();  // 503, of those who wait for changes
ApiError caller_gone();         // for the log, and for clients of HTTP/1.0 that ended their side
ApiError invalid_port();
// To whoever waits for it to become healthy: 403 is what published clients do not wait after.
ApiError never_healthy(std::string_view id, std::string_view state, std::string_view message,
                       std::string_view last_output);

// Behind the proxy.
ApiError context_not_found();
ApiError backend_connection_failed(std::string_view id, int port, const Error& error);
ApiError no_egress();
ApiError egress_ended(std::string_view why);
ApiError upgrade_refused();
ApiError backend_timeout(int port);
ApiError backend_response_failed(int port, const Error& error);

}  // namespace osb::api
