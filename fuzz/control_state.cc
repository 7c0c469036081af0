// What execd says to the server, after a sandbox's own root may have taken its place; and the entry process
// that the server names arrives in execd as it was meant.
#include "check.h"
#include "execd/entry.h"
#include "runtime/native/control.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  if (auto state = runtime::parse_control_state(text)) {
    CHECK(state->output.size() + state->message.size() + state->path.size() <= size);
  }
  auto asked = execd::parse_entry(text);
  if (!asked) return 0;
  runtime::EntryProcess entry{.arguments = asked->argv,
                              .environment = {},
                              .directory = asked->cwd,
                              .uid = asked->uid,
                              .gid = asked->gid,
                              .cpu_millis = asked->limits.cpu_millis,
                              .memory_bytes = asked->limits.memory_bytes};
  auto again = execd::parse_entry(runtime::encode_entry(entry));
  CHECK(again && again->argv == asked->argv && again->cwd == asked->cwd);
  CHECK(again->uid == asked->uid && again->gid == asked->gid);
  CHECK(again->limits.cpu_millis == asked->limits.cpu_millis);
  CHECK(again->limits.memory_bytes == asked->limits.memory_bytes);
  return 0;
}
