#pragma once

// The ends of a handler: reading a bounded body, and answering with JSON, text or an error.

#include "api/error.h"
#include "http/server.h"

namespace osb::server {

using http::Request;
using http::ResponseWriter;
using io::Task;

// At most the size of a JSON body; 413 beyond that, decided before anything is read when the length was
// declared.
Task<api::ApiResult<std::string>> read_body(Request& request);

// A failed write means that the client is gone, which is no event.
Task<> answer(ResponseWriter& response, int status, http::Headers headers, std::string body);
Task<> answer_json(ResponseWriter& response, int status, std::string body);
Task<> answer_error(const Request& request, ResponseWriter& response, api::ApiError error);

}  // namespace osb::server
