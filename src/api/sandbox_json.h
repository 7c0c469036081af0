#pragma once

// Answers about sandboxes as text, built by appending. Members without a value are left out: clients crash on
// null.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "api/create_rules.h"
#include "store/sandboxes.h"

namespace osb::api {

std::string string_array(std::span<const std::string> words);
std::string string_object(const std::map<std::string, std::string>& members);

// The row of a new sandbox; its state is Pending.
store::Sandbox new_row(std::string id, const CreatePlan& plan, WallTime now);

void append_sandbox(std::string& out, const store::Sandbox& row);
std::string created_json(const store::Sandbox& row, bool with_metadata);

struct PageInfo {
  int64_t page = 1, page_size = 20, total = 0;
};
void append_pagination(std::string& out, const PageInfo& info);

}  // namespace osb::api
