#include "http/head_format.h"

#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/strings.h"
#include "http/head_parse.h"

namespace osb::http {
namespace {

void append_number(std::string& out, uint64_t value) {
  char text[20];
  auto end = std::to_chars(text, text + sizeof text, value).ptr;
  out.append(text, end);
}

bool append_field(std::string& out, std::string_view name, std::string_view value) {
  if (!is_token(name) || !is_field_value(value)) return false;
  out.append(name).append(": ").append(value).append("\r\n");
  return true;
}

// How a message is framed and how long the connection lives is decided here, not by whoever made the fields.
bool frames_message(std::string_view name) {
  switch (name.size()) {
    case 10:
      return iequals(name, "connection") || iequals(name, "keep-alive");
    case 14:
      return iequals(name, "content-length");
    case 17:
      return iequals(name, "transfer-encoding");
    default:
      return false;
  }
}

void append_framing(std::string& out, BodyFraming body) {
  if (body.kind == BodyFraming::Kind::length) {
    out.append("Content-Length: ");
    append_number(out, body.length);
    out.append("\r\n");
  } else if (body.kind == BodyFraming::Kind::chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
}

}  // namespace

Result<void> format_response_head(const ResponseFormat& response, std::string& out) {
  out.clear();
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<uint64_t>(response.status));
  out.push_back(' ');
  out.append(reason_phrase(response.status)).append("\r\n");
  bool dated = false;
  bool says_keep_alive = false;
  bool switching = response.status == 101;
  for (const auto& [name, value] : response.headers) {
    if (frames_message(name)) {
      bool connection = iequals(name, "connection");
      says_keep_alive = says_keep_alive || (connection && list_contains(value, "keep-alive"));
      if (!(switching && connection)) continue;
    }
    dated = dated || (name.size() == 4 && iequals(name, "date"));
    if (!append_field(out, name, value))
      return fail(Code::internal, "the answer has an illegal field '" + name + "'");
  }
  for (const auto& [name, value] : response.always) {
    if (frames_message(name) || response.headers.contains(name)) continue;
    dated = dated || iequals(name, "date");
    if (!append_field(out, name, value))
      return fail(Code::internal, "the answer has an illegal field '" + name + "'");
  }
  if (!dated) out.append("Date: ").append(http_date()).append("\r\n");
  append_framing(out, response.body);
  if (response.close) {
    out.append("Connection: close\r\n");
  } else if (says_keep_alive && !switching) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  return {};
}

Result<void> format_request_head(const RequestHead& head, BodyFraming body, std::string& out) {
  if (!is_token(head.method)) return fail(Code::invalid_argument, "the method is not a token");
  if (!is_request_target(head.target))
    return fail(Code::invalid_argument, "the request target is not a path");
  out.clear();
  out.append(head.method).append(" ").append(head.target).append(" HTTP/1.1\r\n");
  for (const auto& [name, value] : head.headers) {
    // Connection is the caller's here: it says upgrade or close.
    if (frames_message(name) && !iequals(name, "connection")) continue;
    if (!append_field(out, name, value)) {
      return fail(Code::invalid_argument, "the request has an illegal field '" + name + "'");
    }
  }
  append_framing(out, body);
  out.append("\r\n");
  return {};
}

std::string_view http_date() {
  thread_local std::time_t second = 0;
  thread_local char text[32];
  std::time_t now = ::time(nullptr);
  if (now != second) {
    using namespace std::chrono;
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    // Neither strftime, whose names depend on the locale, nor gmtime, which reads the time zone file of the
    // image.
    sys_seconds time{seconds(now)};
    auto day = floor<days>(time);
    year_month_day date{day};
    hh_mm_ss clock{time - day};
    std::snprintf(text, sizeof text, "%s, %02u %s %04d %02d:%02d:%02d GMT",
                  kDays[weekday(day).c_encoding() % 7], static_cast<unsigned>(date.day()),
                  kMonths[(static_cast<unsigned>(date.month()) - 1) % 12],
                  static_cast<int>(date.year()) % 10000, static_cast<int>(clock.hours().count()),
                  static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()));
    second = now;
  }
  return {text, 29};
}

std::string_view chunk_prefix(uint64_t size, ChunkPrefix& memory) {
  auto end = std::to_chars(memory, memory + 16, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return {memory, static_cast<size_t>(end - memory)};
}

}  // namespace osb::http
