#pragma once

// The events that only code streams have (the others are in execd/events.h).

#include "interpreter/kernel_message.h"

namespace osb::interpreter {

void append_execution_count(std::string& out, int64_t count, int64_t at);
// `results` has every MIME type; plain text comes as "text" and as "text/plain", because clients read either.
void append_result(std::string& out, const std::vector<std::pair<std::string, std::string>>& data,
                   int64_t at);
void append_code_error(std::string& out, std::string_view name, std::string_view value,
                       const std::vector<std::string>& traceback, int64_t at);

}  // namespace osb::interpreter
