// The environment file: any text gives variables that a process can have, and a value that is quoted as
// clients quote it comes back as it was.
#include "execd/env_file.h"

#include "check.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  execd::Environment base;
  base.set("KNOWN", "a value");
  base.set("EMPTY", "");
  for (const auto& [name, value] : execd::parse_env_file(text, base)) {
    CHECK(!name.empty());
    CHECK(name.find('=') == name.npos && name.find('\0') == name.npos && name.find('\n') == name.npos);
    CHECK(value.find('\0') == value.npos);
  }
  if (text.find('\'') != text.npos || text.find('\0') != text.npos) return 0;
  auto quoted = execd::parse_env_file("BEFORE=1\nKEY='" + std::string(text) + "'\nAFTER=2\n", base);
  CHECK(quoted["KEY"] == text && quoted["BEFORE"] == "1" && quoted["AFTER"] == "2" && quoted.size() == 3);
  return 0;
}
