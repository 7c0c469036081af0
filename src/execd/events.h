#pragma once

// The events of a command, session or code stream, to the byte: one object of bare JSON per event, then two
// line feeds. No "data:" prefix, no comments: clients cut frames at the two line feeds and nowhere else.

#include <cstdint>
#include <string>
#include <string_view>

namespace osb::execd::events {

// All append one event. `at` is the time in milliseconds since 1970.
void append_init(std::string& out, std::string_view id, int64_t at);
void append_ping(std::string& out, int64_t at);
enum class Stream { out, err };
void append_output(std::string& out, Stream stream, std::string_view text, int64_t at);
// A time of 0 ms is left out, as clients know it.
void append_complete(std::string& out, int64_t execution_ms, int64_t at);
void append_error(std::string& out, std::string_view name, std::string_view value, std::string_view trace,
                  int64_t at);

inline constexpr std::string_view kCommandError = "CommandExecError";

}  // namespace osb::execd::events
