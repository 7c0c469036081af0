#include "interpreter/kernel_message.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "json/decode.h"
#include "json/escape.h"

namespace osb::interpreter {
namespace {

namespace bj = boost::json;
using Op = KernelMessage::Op;

constexpr size_t kMaxMembers = 64;  // of a MIME bundle
constexpr size_t kMaxTraceLines = 1000;
constexpr size_t kMaxNames = 4096;

Op parse_op(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kOps[] = {
      {"ready", Op::ready}, {"result", Op::result},   {"display", Op::display}, {"error", Op::error},
      {"done", Op::done},   {"modules", Op::modules}, {"forked", Op::forked},   {"stale", Op::stale},
  };
  for (auto& [text, op] : kOps) {
    if (name == text) return op;
  }
  return Op::unknown;
}

std::string text_of(const bj::value& value) {
  return value.is_string() ? std::string(value.as_string()) : json::print(value);
}

void decode_list(const bj::value& value, std::vector<std::string>& out, size_t limit) {
  if (!value.is_array()) return;
  for (const bj::value& element : value.as_array()) {
    if (out.size() == limit) return;
    out.push_back(text_of(element));
  }
}

void decode_data(const bj::value& value, KernelMessage& message) {
  if (!value.is_object()) return;
  for (const auto& member : value.as_object()) {
    if (message.data.size() == kMaxMembers) return;
    if (!member.value().is_null()) message.data.emplace_back(member.key(), text_of(member.value()));
  }
}

}  // namespace

Result<KernelMessage> parse_message(std::string_view text) {
  bj::value value = TRY(json::parse(text));
  if (!value.is_object()) return fail(Code::corrupt, "the kernel sent something that is no object");
  KernelMessage message;
  for (const auto& member : value.as_object()) {
    std::string_view key = member.key();
    const bj::value& given = member.value();
    if (key == "op") {
      if (!given.is_string()) return fail(Code::corrupt, "the kernel sent an 'op' that is no string");
      message.op = parse_op(std::string_view(given.as_string()));
    } else if (key == "id") {
      message.id = text_of(given);
    } else if (key == "count" || key == "pid") {
      (key == "pid" ? message.pid : message.count) = given.is_int64() ? given.as_int64() : 0;
    } else if (key == "wait") {
      message.wait = given.is_bool() && given.as_bool();
    } else if (key == "data") {
      decode_data(given, message);
    } else if (key == "ename") {
      message.ename = text_of(given);
    } else if (key == "evalue") {
      message.evalue = text_of(given);
    } else if (key == "traceback") {
      decode_list(given, message.traceback, kMaxTraceLines);
    } else if (key == "names") {
      decode_list(given, message.names, kMaxNames);
    }
  }
  return message;
}

std::string encode_run(std::string_view id, std::string_view code) {
  std::string out = "{\"op\":\"run\",\"id\":";
  json::append_minimal_string(out, id);
  out += ",\"code\":";
  json::append_minimal_string(out, code);
  return out + "}";
}

std::string encode_interrupt(std::string_view id) {
  std::string out = "{\"op\":\"interrupt\",\"id\":";
  json::append_minimal_string(out, id);
  return out + "}";
}

}  // namespace osb::interpreter
