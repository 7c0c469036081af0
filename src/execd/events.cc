#include "execd/events.h"

#include <charconv>

#include "json/escape.h"

namespace osb::execd::events {
namespace {

void append_number(std::string& out, int64_t value) {
  char digits[24];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

void append_time(std::string& out, int64_t at) {
  out.append(",\"timestamp\":");
  append_number(out, at);
}

void append_text_event(std::string& out, std::string_view type, std::string_view text, int64_t at) {
  out.append("{\"type\":\"").append(type).append("\",\"text\":");
  json::append_string(out, text);
  append_time(out, at);
  out.append("}\n\n");
}

}  // namespace

void append_init(std::string& out, std::string_view id, int64_t at) {
  append_text_event(out, "init", id, at);
}

void append_ping(std::string& out, int64_t at) { append_text_event(out, "ping", "pong", at); }

void append_output(std::string& out, Stream stream, std::string_view text, int64_t at) {
  append_text_event(out, stream == Stream::out ? "stdout" : "stderr", text, at);
}

void append_complete(std::string& out, int64_t execution_ms, int64_t at) {
  out.append("{\"type\":\"execution_complete\"");
  if (execution_ms > 0) {
    out.append(",\"execution_time\":");
    append_number(out, execution_ms);
  }
  append_time(out, at);
  out.append("}\n\n");
}

void append_error(std::string& out, std::string_view name, std::string_view value, std::string_view trace,
                  int64_t at) {
  out.append("{\"type\":\"error\"");
  append_time(out, at);
  out.append(",\"error\":{\"ename\":");
  json::append_string(out, name);
  out.append(",\"evalue\":");
  json::append_string(out, value);
  out.append(",\"traceback\":[");
  json::append_string(out, trace);
  out.append("]}}\n\n");
}

}  // namespace osb::execd::events
