#pragma once

// Answers about sandboxes as text, built by appending. Members without a value are left out: clients crash on
// null.

#include <string>

#include "sandbox/sandbox.h"

namespace osb::api {

void append_sandbox(std::string& out, const sandbox::Sandbox& sandbox);
std::string created_json(const sandbox::Sandbox& sandbox, bool with_metadata);

struct PageInfo {
  int64_t page = 1, page_size = 20, total = 0;
};
void append_pagination(std::string& out, const PageInfo& info);

}  // namespace osb::api
