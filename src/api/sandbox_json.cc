#include "api/sandbox_json.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/create_request.h"
#include "json/escape.h"
#include "json/string_lists.h"
#include "sandbox/create_request.h"
#include "sandbox/pool.h"
#include "sandbox/snapshot.h"

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

void append_status(std::string& out, const sandbox::Status& status) {
  out.append("\"status\":{\"state\":\"").append(to_string(status.state)).append("\"");
  if (status.reason != sandbox::Reason::none) {
    out.append(",\"reason\":\"").append(to_string(status.reason)).append("\"");
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

// Some of them are for this server alone.
void append_extensions(std::string& out, const json::StringMap& extensions) {
  if (extensions.empty()) return;
  constexpr const char* kOwn[] = {sandbox::kRenewExtension, sandbox::kIdleExtension, sandbox::kPoolExtension,
                                  sandbox::kSecuredExtension};
  auto is_there = [&](const char* key) { return extensions.contains(key); };
  if (std::ranges::none_of(kOwn, is_there)) {
    json::append_map(out.append(",\"extensions\":"), extensions);
    return;
  }
  json::StringMap shown = extensions;
  for (const char* key : kOwn) shown.erase(key);
  if (!shown.empty()) json::append_map(out.append(",\"extensions\":"), shown);
}

void append_allocation(std::string& out, const json::StringMap& extensions) {
  auto pool = extensions.find(sandbox::kPoolExtension);
  if (pool == extensions.end()) return;
  json::append_string(out.append(",\"allocation\":{\"mode\":\"pool\",\"poolRef\":"), pool->second);
  out.append(",\"state\":\"allocated\"}");
}

// What both forms have, from platform to createdAt.
void append_common(std::string& out, const sandbox::Sandbox& sandbox, bool with_metadata,
                   std::string_view standard = "") {
  append_platform(out, sandbox.platform);
  out.push_back(',');
  append_status(out, sandbox.status);
  if (with_metadata) json::append_map(out.append(",\"metadata\":"), sandbox.metadata);
  bool is_standard = standard.empty() || sandbox.runtime.empty() || sandbox.runtime == standard;
  if (is_standard || sandbox.extensions.contains(kRuntimeExtension)) {
    append_extensions(out, sandbox.extensions);
  } else {
    json::StringMap told = sandbox.extensions;
    told[kRuntimeExtension] = sandbox.runtime;
    append_extensions(out, told);
  }
  json::append_list(out.append(",\"entrypoint\":"), sandbox.entrypoint);
  if (sandbox.expires) append_time_member(out, ",\"expiresAt\":\"", *sandbox.expires);
  append_time_member(out, ",\"createdAt\":\"", sandbox.created);
  out.push_back('}');
}

}  // namespace

void append_sandbox(std::string& out, const sandbox::Sandbox& sandbox, std::string_view standard) {
  out.append("{\"id\":\"").append(sandbox.id);
  // One of the two.
  if (std::string_view snapshot = sandbox::snapshot_of_image(sandbox.image); !snapshot.empty()) {
    json::append_string(out.append("\",\"snapshotId\":"), snapshot);
  } else {
    json::append_string(out.append("\",\"image\":{\"uri\":"), sandbox.image);
    out.push_back('}');
  }
  append_allocation(out, sandbox.extensions);
  append_common(out, sandbox, !sandbox.metadata.empty(), standard);
}

std::string created_json(const sandbox::Sandbox& sandbox, bool with_metadata) {
  std::string out = "{\"id\":\"" + sandbox.id + "\"";
  append_common(out, sandbox, with_metadata);
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
