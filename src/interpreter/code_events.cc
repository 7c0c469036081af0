#include "interpreter/code_events.h"

#include "json/escape.h"

namespace osb::interpreter {
namespace {

constexpr size_t kMaxPlainText = 1 << 20;  // one client gives up on lines above 4 MiB

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (out.back() != '{') out += ',';
  json::append_string(out, name);
  out += ':';
  json::append_string(out, value);
}

// At most kMaxPlainText bytes, cut between code points.
std::string shorten(std::string_view text) {
  if (text.size() <= kMaxPlainText) return std::string(text);
  size_t end = kMaxPlainText;
  while (end > kMaxPlainText - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "\n… " + std::to_string(text.size() - end) +
         " more bytes; print them or write them to a file";
}

}  // namespace

void append_execution_count(std::string& out, int64_t count, int64_t at) {
  out += "{\"type\":\"execution_count\",\"execution_count\":" + std::to_string(count) +
         ",\"timestamp\":" + std::to_string(at) + "}\n\n";
}

void append_result(std::string& out, const std::vector<std::pair<std::string, std::string>>& data,
                   int64_t at) {
  out += "{\"type\":\"result\",\"timestamp\":" + std::to_string(at) + ",\"results\":{";
  for (const auto& [mime, value] : data) {
    if (mime != "text/plain") {
      if (mime != "text") append_member(out, mime, value);
      continue;
    }
    std::string text = shorten(value);
    append_member(out, "text", text);
    append_member(out, "text/plain", text);
  }
  out += "}}\n\n";
}

void append_code_error(std::string& out, std::string_view name, std::string_view value,
                       const std::vector<std::string>& traceback, int64_t at) {
  out += "{\"type\":\"error\",\"timestamp\":" + std::to_string(at) + ",\"error\":{";
  append_member(out, "ename", name.empty() ? "Error" : name);
  append_member(out, "evalue", shorten(value));
  out += ",\"traceback\":[";
  size_t total = 0;
  for (const std::string& line : traceback) {
    if ((total += line.size()) > kMaxPlainText) break;
    if (out.back() != '[') out += ',';
    json::append_string(out, line);
  }
  out += "]}}\n\n";
}

}  // namespace osb::interpreter
