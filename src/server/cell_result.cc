#include "server/cell_result.h"

#include "base/strings.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::server {
namespace {

void member(std::string& out, std::string_view name, std::string_view text) {
  if (out.back() != '{') out.push_back(',');
  json::append_string(out, name);
  out.push_back(':');
  json::append_string(out, text);
}

// Something that has no text, like a picture, is named by its types.
std::string plain_text(const json::Field& results) {
  for (const char* name : {"text/plain", "text"}) {
    if (auto text = results[name].string()) return *text;
  }
  std::string types;
  if (const auto* raw = results.raw(); raw && raw->is_object()) {
    for (const auto& [type, value] : raw->get_object())
      types += (types.empty() ? "" : ", ") + std::string(type);
  }
  return "<" + types + ">";
}

std::string error_json(const json::Field& error) {
  std::string out = "{";
  member(out, "name", error["ename"].string().value_or(""));
  member(out, "value", error["evalue"].string().value_or(""));
  out.append(",\"traceback\":[");
  for (const std::string& line : error["traceback"].string_list().value_or(std::vector<std::string>{})) {
    if (out.back() != '[') out.push_back(',');
    json::append_string(out, line);
  }
  return out + "]}";
}

}  // namespace

Result<void> CellResult::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (line_.size() > kMaxLine) return fail(Code::corrupt, "a line of the event stream is too long");
    if (end == std::string_view::npos) return {};
    bytes.remove_prefix(end + 1);
    if (!trim(line_).empty()) TRY(take(line_));
    line_.clear();
  }
  return {};
}

void CellResult::append(std::string& text, std::string_view more) {
  size_t room = kMaxText - std::min(kMaxText, text.size());
  truncated_ |= more.size() > room;
  text.append(more.substr(0, room));
}

// The event that tells of an error does not say how long the cell took; its moment and that of the first do.
int64_t CellResult::elapsed(int64_t now_ms) const {
  return began_ms_ >= 0 && now_ms >= began_ms_ ? now_ms - began_ms_ : -1;
}

Result<void> CellResult::take(std::string_view line) {
  auto value = TRY(in_context("event stream", json::parse(line)));
  json::Issues issues;
  auto event = json::Field::root(value, issues, "event");
  auto type = event["type"].string();
  auto text = event["text"].string().value_or("");
  if (type == "init") {
    began_ms_ = event["timestamp"].integer().value_or(-1);
  } else if (type == "stdout") {
    append(stdout_, text);
  } else if (type == "stderr") {
    append(stderr_, text);
  } else if (type == "result") {
    if (has_result_) append(result_, "\n");
    append(result_, plain_text(event["results"]));
    has_result_ = true;
  } else if (type == "error") {
    error_ = error_json(event["error"]);
    execution_ms_ = elapsed(event["timestamp"].integer().value_or(-1));
    complete_ = true;
  } else if (type == "execution_complete") {
    execution_ms_ = event["execution_time"].integer().value_or(0);
    complete_ = true;
  } else if (!type && event["code"].present()) {  // a failure after the head of the answer was out
    error_ = "{";
    member(error_, "name", event["code"].string().value_or(""));
    member(error_, "value", event["message"].string().value_or(""));
    error_.append(",\"traceback\":[]}");
    complete_ = true;
  }
  if (issues.empty()) return {};
  const auto& issue = issues.list().front();
  return fail(Code::corrupt, json::to_string(issue.path) + ": " + issue.message);
}

std::string CellResult::to_json() const {
  std::string out = "{";
  member(out, "stdout", stdout_);
  member(out, "stderr", stderr_);
  if (has_result_) member(out, "result", result_);
  if (!error_.empty()) out.append(",\"error\":").append(error_);
  if (execution_ms_ >= 0) out.append(",\"executionTime\":").append(std::to_string(execution_ms_));
  if (truncated_) out.append(",\"truncated\":true");
  return out + "}";
}

}  // namespace osb::server
