#pragma once

// What `osb mcp` offers to models: names, descriptions and parameters of its tools.

#include <string_view>

#include "json/decode.h"

namespace osb::cli {

json::bj::array mcp_tools();  // as tools/list gives them
bool is_mcp_tool(std::string_view name);

}  // namespace osb::cli
