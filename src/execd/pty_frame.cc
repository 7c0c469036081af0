#include "execd/pty_frame.h"

#include "execd/exit_status.h"
#include "json/decode.h"

namespace osb::execd::pty {

Frame parse_text_frame(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_object()) return Ignored{};
  json::Issues issues;
  json::Field root = json::Field::root(*value, issues, "frame", json::Reading::exact);
  std::string type = root["type"].string().value_or("");
  if (type == "stdin") return Input{root["data"].string().value_or("")};
  if (type == "ping") return Ping{};
  if (type == "eof") return EndOfInput{};
  if (type == "resize") {
    int64_t columns = root["cols"].integer().value_or(0), rows = root["rows"].integer().value_or(0);
    if (columns <= 0 || rows <= 0 || columns > UINT16_MAX || rows > UINT16_MAX) return Ignored{};
    return Resize{{static_cast<uint16_t>(columns), static_cast<uint16_t>(rows)}};
  }
  if (type == "signal") {
    int number = signal_number(root["signal"].string().value_or(""));
    if (number == 0) return Ignored{};
    return Signal{number};
  }
  return Unknown{std::move(type)};
}

}  // namespace osb::execd::pty
