// The configuration: any text is read or refused, a refusal is short printable lines that name the file, and
// no text starts a server that its key does not guard when the file has something that looks like one.
#include "server/config.h"

#include <algorithm>

#include "check.h"

using namespace osb;

namespace {

const char* no_variable(const char*) { return nullptr; }

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return (c >= ' ' && c != 0x7f) || c == '\n'; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string text(fuzz::text_of(data, size));
  auto config = server::parse_config(text, "f.toml", no_variable);
  if (!config) {
    const std::string& message = config.error().message;
    CHECK(message.starts_with("f.toml:"));
    CHECK(message.size() < 4096 && is_printable(message));
    return 0;
  }
  CHECK(config->server.port != 0 && !config->native.state_dir.empty());
  for (const std::string& warning : config->warnings) CHECK(warning.size() < 512 && is_printable(warning));
  for (const auto& [key, line] : config->lines) CHECK(line > 0 && line <= size + 1);
  // What is accepted is accepted again, with the same result, by the server that gets the same text.
  auto again = server::parse_config(text, "f.toml", no_variable);
  CHECK(again && again->server.api_key == config->server.api_key && again->warnings == config->warnings);
  // A misspelt key is never passed over.
  auto misspelt = server::parse_config(text + "\n[zzz]\napikey = \"x\"\n", "f.toml", no_variable);
  CHECK(!misspelt);
  return 0;
}
