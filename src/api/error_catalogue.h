#pragma once

// Every code the lifecycle API answers with, each made in one place so that status, code and wording cannot
// drift apart.

#include "api/error.h"
#include "json/decode.h"

namespace osb::api {

// Requests that mean nothing.
ApiError invalid_request(const json::Issues& issues);  // 422, one entry of `detail` per issue
ApiError invalid_request(json::Issue issue);
ApiError invalid_json(const Error& parse_error);  // 422, loc is the byte position
ApiError not_json();                              // 422, wrong Content-Type
ApiError body_too_large(size_t limit);
ApiError no_such_route(std::string_view path);
ApiError method_not_allowed(std::string_view method, std::string allow);
ApiError malformed_http(std::string_view why);
ApiError body_too_slow();  // 408

// Requests that are refused.
ApiError missing_api_key();
ApiError missing_endpoint_token();  // the same, for a path to a port of a sandbox
ApiError invalid_api_key();
ApiError host_not_allowed(std::string_view host);
ApiError origin_not_allowed(std::string_view origin);
ApiError service_worker_refused();
ApiError invalid_parameter(std::string_view field, std::string why);  // 400
ApiError unsupported(std::string_view field, std::string why);        // 400, a part this server does not have
ApiError not_implemented(std::string_view code, std::string what);    // 501
ApiError invalid_label(std::string_view key, std::string why);
ApiError reserved_label(std::string_view key);  // in a patch; without the SANDBOX:: prefix
ApiError invalid_metadata_filter();
ApiError invalid_scope(std::string_view scope, std::string_view known);

// Sandboxes.
ApiError sandbox_not_found(std::string_view id);
ApiError image_not_found(const Error& error);  // 400: clients do not understand 404 on create
ApiError invalid_entrypoint(const Error& error);
ApiError entry_ended(const Error& error);
ApiError bad_limit(const Error& error);
ApiError start_failed(const Error& error);
ApiError start_failed_on_disk(const Error& error);  // for errors of the service's own disk
ApiError overloaded(std::string why);
// It may well run: what is missing is the way to it.
ApiError unreachable(std::string_view id, const Error& error);
ApiError too_many_creates(std::string why);  // 429: of the statuses for "later", what clients know on create
ApiError caller_gone();                      // for the log, and for clients of HTTP/1.0 that ended their side
ApiError expiration_in_the_past();
ApiError no_expiration(std::string_view id);
ApiError invalid_port(std::string_view port);
ApiError not_running(std::string_view id, std::string_view state, std::string_view message);
// To whoever waits for it to become healthy: 403 is what published clients do not wait after.
ApiError never_healthy(std::string_view id, std::string_view state, std::string_view message,
                       std::string_view last_output);
ApiError not_paused(std::string_view id, std::string_view state);
ApiError paused(std::string_view id, std::string_view state);  // to whoever wants to talk to it
ApiError pause_unsupported(const Error& error);                // 400
ApiError pause_failed(const Error& error);
ApiError resume_failed(const Error& error);
ApiError delete_failed(const Error& error);

// Behind the proxy.
ApiError backend_connection_failed(std::string_view id, int port, const Error& error);
ApiError no_egress();
ApiError upgrade_refused();
ApiError backend_timeout(int port);
ApiError backend_response_failed(int port, const Error& error);

ApiError internal_error(const Error& error);  // of the store; says when it is the disk

}  // namespace osb::api
