#pragma once

// GET /sandboxes: paging and filters from the query string; and single typed query parameters for the other
// routes.

#include "api/error.h"
#include "http/message.h"
#include "sandbox/sandbox.h"

namespace osb::api {

struct ListQuery {
  sandbox::Filter filter;
  int64_t page = 1, page_size = 20;
};

ApiResult<ListQuery> decode_list_query(std::string_view raw_query);

struct Range {
  int64_t low, high, fallback;
};
// An integer parameter; 422 when it is none or outside the range.
ApiResult<int64_t> integer_parameter(const http::Query& query, std::string_view name, Range range);
ApiResult<bool> boolean_parameter(const http::Query& query, std::string_view name, bool fallback);

}  // namespace osb::api
