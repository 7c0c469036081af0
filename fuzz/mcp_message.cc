// What a client of `osb mcp` sends: a message, or a fault that can be told. Both can be answered with JSON
// that reads back.
#include "cli/mcp_message.h"

#include "check.h"

using namespace osb;
using namespace osb::cli;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto message = read_mcp_message(text);
  if (!message) {
    CHECK(json::parse(mcp_failure(message.error())));
    return 0;
  }
  CHECK(message->kind == McpMessage::Kind::answer || !message->method.empty());
  CHECK(json::parse(mcp_answer(message->id, std::move(message->params))));
  return 0;
}
