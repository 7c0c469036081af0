#include "api/sandbox_json.h"

#include <fmt/format.h>

#include "json/escape.h"

namespace osb::api {
namespace {

void append_digits(std::string& out, int64_t value, int digits) {
  char text[8];
  for (int i = digits - 1; i >= 0; --i) {
    text[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out.append(text, static_cast<size_t>(digits));
}

// format_api_time without its temporary strings: a list shows three times per sandbox.
void append_time(std::string& out, WallTime time) {
  using namespace std::chrono;
  auto day = floor<days>(time);
  year_month_day date{day};
  hh_mm_ss clock{time - day};
  append_digits(out, static_cast<int>(date.year()), 4);
  out.push_back('-');
  append_digits(out, static_cast<unsigned>(date.month()), 2);
  out.push_back('-');
  append_digits(out, static_cast<unsigned>(date.day()), 2);
  out.push_back('T');
  append_digits(out, clock.hours().count(), 2);
  out.push_back(':');
  append_digits(out, clock.minutes().count(), 2);
  out.push_back(':');
  append_digits(out, clock.seconds().count(), 2);
  if (int64_t micros = clock.subseconds().count(); micros != 0) {
    out.push_back('.');
    append_digits(out, micros, 6);
  }
  out.push_back('Z');
}

void append_time_member(std::string& out, std::string_view start, WallTime time) {
  out.append(start);
  append_time(out, time);
  out.push_back('"');
}

void append_status(std::string& out, const store::Status& status) {
  out.append("\"status\":{\"state\":\"").append(to_string(status.state)).append("\"");
  if (!status.reason.empty()) {
    out.append(",\"reason\":");
    json::append_string(out, status.reason);
  }
  if (!status.message.empty()) {
    out.append(",\"message\":");
    json::append_string(out, status.message);
  }
  append_time_member(out, ",\"lastTransitionAt\":\"", status.changed);
  out.push_back('}');
}

void append_platform(std::string& out, std::string_view platform) {
  size_t slash = platform.find('/');
  if (slash == platform.npos) return;
  out.append(",\"platform\":{\"os\":\"").append(platform.substr(0, slash));
  out.append("\",\"arch\":\"").append(platform.substr(slash + 1)).append("\"}");
}

// What both forms have, from platform to createdAt.
void append_common(std::string& out, const store::Sandbox& row, bool with_metadata) {
  append_platform(out, row.platform);
  out.push_back(',');
  append_status(out, row.status);
  if (with_metadata) out.append(",\"metadata\":").append(row.metadata);
  if (row.extensions.size() > 2) out.append(",\"extensions\":").append(row.extensions);
  out.append(",\"entrypoint\":").append(row.entrypoint);
  if (row.expires) append_time_member(out, ",\"expiresAt\":\"", *row.expires);
  append_time_member(out, ",\"createdAt\":\"", row.created);
  out.push_back('}');
}

}  // namespace

std::string string_array(std::span<const std::string> words) {
  std::string out = "[";
  for (const std::string& word : words) {
    if (out.size() > 1) out.push_back(',');
    json::append_string(out, word);
  }
  return out + "]";
}

std::string string_object(const std::map<std::string, std::string>& members) {
  std::string out = "{";
  for (const auto& [key, value] : members) {
    if (out.size() > 1) out.push_back(',');
    json::append_string(out, key);
    out.push_back(':');
    json::append_string(out, value);
  }
  return out + "}";
}

store::Sandbox new_row(std::string id, const CreatePlan& plan, WallTime now) {
  store::Sandbox row;
  row.id = std::move(id);
  row.status = {store::State::pending, "STARTING", "The sandbox is being started.", now};
  row.image = plan.image;
  row.entrypoint = string_array(plan.entrypoint);
  if (plan.metadata) row.metadata = string_object(*plan.metadata);
  row.limits = string_object(plan.limits_text);
  std::vector<std::string> names;
  for (const auto& [key, value] : plan.env) names.push_back(key);
  row.env_names = string_array(names);
  row.extensions = string_object(plan.extensions);
  row.platform = plan.platform;
  row.created = now;
  if (plan.timeout) row.expires = now + *plan.timeout;
  return row;
}

void append_sandbox(std::string& out, const store::Sandbox& row) {
  out.append("{\"id\":\"").append(row.id).append("\",\"image\":{\"uri\":");
  json::append_string(out, row.image);
  out.push_back('}');
  append_common(out, row, row.metadata.size() > 2);
}

std::string created_json(const store::Sandbox& row, bool with_metadata) {
  std::string out = "{\"id\":\"" + row.id + "\"";
  append_common(out, row, with_metadata);
  return out;
}

void append_pagination(std::string& out, const PageInfo& info) {
  int64_t pages = (info.total + info.page_size - 1) / info.page_size;
  fmt::format_to(
      std::back_inserter(out),
      R"("pagination":{{"page":{},"pageSize":{},"totalItems":{},"totalPages":{},"hasNextPage":{}}})",
      info.page, info.page_size, info.total, pages, info.page < pages);
}

}  // namespace osb::api
