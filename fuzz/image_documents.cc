// What images say about themselves, and the index of those that are here: understood or refused, and what is
// understood is written the same. The accounts of an image give ids to its user.
#include <sys/types.h>

#include "check.h"
#include "image/accounts.h"
#include "image/digest.h"
#include "image/index.h"
#include "image/inspect.h"
#include "image/reference.h"
#include "json/decode.h"

using namespace osb;

namespace {

void check_index(std::string_view text) {
  auto index = image::decode_index(text);
  if (!index) return;
  std::string written = image::encode(*index);
  auto again = image::decode_index(written);
  CHECK(again && image::encode(*again) == written);
}

void check_config(std::string_view text) {
  auto value = json::parse(text);
  if (!value) return;
  auto config = image::decode_oci_config(*value);
  if (!config) return;
  for (const auto& [name, content] : config->env) {
    CHECK(!name.empty() && name.find('=') == name.npos && name.find('\0') == name.npos &&
          content.find('\0') == content.npos);
  }
}

void check_accounts(std::string_view text) {
  for (const char* user : {"", "app", "1000", "app:staff", "4294967295", "0:4294967295"}) {
    image::ImageConfig config;
    config.user = user;
    if (!image::resolve_user(config, text, text)) continue;
    CHECK(config.uid != UINT32_MAX && config.gid != UINT32_MAX);
  }
}

void check_names(std::string_view text) {
  if (auto digest = image::parse_digest(text)) {
    CHECK(digest->size() == 64 && digest->find_first_not_of("0123456789abcdef") == std::string::npos);
  }
  if (image::check_name(text)) CHECK(text.find('\0') == text.npos && !text.starts_with('/'));
  std::string from_file = image::name_from_file(text);
  CHECK(from_file.size() <= text.size() + 16);
  (void)image::candidates(std::string(text), {{"*a", "one"}, {"b*", "two"}});
  (void)image::parse_env(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_index(text);
  check_config(text);
  check_accounts(text);
  check_names(text);
  if (auto found = image::parse_inspection(text)) CHECK(found->members.size() <= size);
  return 0;
}
