#pragma once

// Answers about sandboxes as text, built by appending. Members without a value are left out: clients crash on
// null.

#include <string>
#include <string_view>

#include "sandbox/sandbox.h"

namespace osb::api {

// `standard`: the runtime that nobody has to name. One of another says so in its extensions, also when it is
// older than that choice.
void append_sandbox(std::string& out, const sandbox::Sandbox& sandbox, std::string_view standard = "");
std::string created_json(const sandbox::Sandbox& sandbox, bool with_metadata);

struct PageInfo {
  int64_t page = 1, page_size = 20, total = 0;
};
void append_pagination(std::string& out, const PageInfo& info);

}  // namespace osb::api
