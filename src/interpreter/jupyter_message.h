#pragma once

// The messages of the Jupyter protocol (version 5.3) on a kernel's WebSocket, as far as they matter here.

#include <optional>

#include "interpreter/kernel.h"

namespace osb::interpreter {

// execute_request on the shell channel; `id` becomes the message's id, which every answer names as its
// parent.
std::string encode_execute(std::string_view id, std::string_view session, std::string_view code, bool silent);

struct JupyterMessage {
  enum class Kind { stream, shown, error, idle, reply, restarting, other };
  Kind kind = Kind::other;
  std::string parent;  // the id of the request it answers
  Stream stream = Stream::out;
  std::string text;       // of a stream
  KernelMessage message;  // of shown (result or display) and error; of a reply, the count
};

// Code::corrupt for anything that is no message.
Result<JupyterMessage> parse_jupyter(std::string_view json);

}  // namespace osb::interpreter
