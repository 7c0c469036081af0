#include "interpreter/jupyter_message.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/clock.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::interpreter {
namespace {

namespace bj = boost::json;
using Kind = JupyterMessage::Kind;

constexpr size_t kMaxMembers = 64, kMaxTraceLines = 1000;

const bj::value* member(const bj::value& value, std::string_view name) {
  return value.is_object() ? value.as_object().if_contains(name) : nullptr;
}

std::string text(const bj::value& value, std::string_view name) {
  const bj::value* found = member(value, name);
  return found && found->is_string() ? std::string(found->as_string()) : std::string();
}

// A notebook value may be one string, or a list of lines, or any JSON.
std::string value_text(const bj::value& value) {
  if (value.is_string()) return std::string(value.as_string());
  return json::print(value);
}

int64_t count_of(const bj::value& content) {
  const bj::value* found = member(content, "execution_count");
  return found && found->is_int64() ? found->as_int64() : 0;
}

void decode_shown(const bj::value& content, KernelMessage& message) {
  message.count = count_of(content);
  const bj::value* data = member(content, "data");
  if (!data || !data->is_object()) return;
  for (const auto& entry : data->as_object()) {
    if (message.data.size() == kMaxMembers) return;
    message.data.emplace_back(entry.key(), value_text(entry.value()));
  }
}

void decode_error(const bj::value& content, KernelMessage& message) {
  message.op = KernelMessage::Op::error;
  message.ename = text(content, "ename");
  message.evalue = text(content, "evalue");
  const bj::value* lines = member(content, "traceback");
  if (!lines || !lines->is_array()) return;
  for (const bj::value& line : lines->as_array()) {
    if (message.traceback.size() < kMaxTraceLines) message.traceback.push_back(value_text(line));
  }
}

}  // namespace

std::string encode_execute(std::string_view id, std::string_view session, std::string_view code,
                           bool silent) {
  std::string out = "{\"header\":{\"msg_id\":";
  json::append_minimal_string(out, id);
  out += ",\"username\":\"execd\",\"session\":";
  json::append_minimal_string(out, session);
  out += ",\"date\":\"" + format_time(wall_now(), 6) +
         "\",\"msg_type\":\"execute_request\",\"version\":\"5.3\"},";
  out += "\"parent_header\":{},\"metadata\":{},\"content\":{\"code\":";
  json::append_minimal_string(out, code);
  std::string quiet = silent ? "true" : "false", kept = silent ? "false" : "true";
  out += ",\"silent\":" + quiet + ",\"store_history\":" + kept +
         ",\"user_expressions\":{},\"allow_stdin\":false,\"stop_on_error\":false},\"buffers\":[],\"channel\":"
         "\"shell\"}";
  return out;
}

Result<JupyterMessage> parse_jupyter(std::string_view json) {
  auto parsed = json::parse(json);
  if (!parsed) return fail(Code::corrupt, "a message that is no JSON");
  const bj::value& value = *parsed;
  const bj::value* header = member(value, "header");
  if (!header || !header->is_object()) return fail(Code::corrupt, "a message without header");
  std::string type = text(*header, "msg_type");
  JupyterMessage out;
  if (const bj::value* parent = member(value, "parent_header")) out.parent = text(*parent, "msg_id");
  out.message.id = out.parent;
  const bj::value* found = member(value, "content");
  const bj::value content = found ? *found : bj::value(bj::object());
  if (type == "stream") {
    out.kind = Kind::stream;
    out.stream = text(content, "name") == "stderr" ? Stream::err : Stream::out;
    out.text = text(content, "text");
  } else if (type == "execute_result" || type == "display_data" || type == "update_display_data") {
    out.kind = Kind::shown;
    out.message.op = type == "execute_result" ? KernelMessage::Op::result : KernelMessage::Op::display;
    decode_shown(content, out.message);
  } else if (type == "error") {
    out.kind = Kind::error;
    decode_error(content, out.message);
  } else if (type == "execute_reply") {
    out.kind = Kind::reply;
    out.message.count = count_of(content);
    if (text(content, "status") == "error") decode_error(content, out.message);
  } else if (type == "status") {
    std::string state = text(content, "execution_state");
    if (state == "idle") out.kind = Kind::idle;
    if (state == "restarting" || state == "autorestarting" || state == "dead") out.kind = Kind::restarting;
  }
  return out;
}

}  // namespace osb::interpreter
