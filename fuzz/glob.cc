// Search patterns: parsing and matching end in bounded time whatever the pattern, and a name without special
// signs matches itself and "*". The input is the pattern and the name, cut at the first line feed.
#include "execd/glob.h"

#include "check.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  size_t cut = text.find('\n');
  std::string pattern(text.substr(0, cut));
  std::string_view name = cut == text.npos ? std::string_view() : text.substr(cut + 1);
  if (auto glob = execd::Glob::parse(pattern)) {
    bool once = glob->matches(name);
    CHECK(glob->matches(name) == once);
  }
  bool plain = !name.empty();
  for (char c : name) plain = plain && ((c >= 'a' && c <= 'z') || c == '.' || c == '-');
  if (!plain || name.size() > 255) return 0;
  CHECK(execd::Glob::parse(std::string(name))->matches(name));
  CHECK(execd::Glob::parse("*")->matches(name));
  CHECK(execd::Glob::parse("**")->matches(name));
  CHECK(!execd::Glob::parse("X" + std::string(name))->matches(name));
  return 0;
}
