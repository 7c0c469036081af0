// What a Redis server answers, what gateways push into its lists, and its address: understood or refused.
#include "base/ids.h"
#include "check.h"
#include "server/redis_address.h"
#include "server/redis_reply.h"
#include "server/renew_intent.h"

using namespace osb;

namespace {

void check_reply(std::string_view text) {
  auto parsed = server::parse_redis_reply(text);
  if (!parsed || !*parsed) return;
  const auto& [reply, size] = **parsed;
  CHECK(size > 0 && size <= text.size() && size <= server::kMaxReplyBytes);
  CHECK(reply.items.size() <= server::kMaxReplyItems);
  for (const auto& item : reply.items) CHECK(item.items.empty() && item.text.size() <= server::kMaxReplyText);
  // The bytes behind it change nothing, and without its last byte it is none yet.
  auto again = server::parse_redis_reply(text.substr(0, size));
  CHECK(again && *again && (*again)->size == size);
  auto less = server::parse_redis_reply(text.substr(0, size - 1));
  CHECK(less && !*less);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_reply(text);
  if (auto intent = server::parse_renew_intent(text)) CHECK(is_sandbox_id(intent->sandbox));
  if (auto address = server::parse_redis_address(text))
    CHECK(!address->host.empty() && address->port != 0 &&
          (address->user.empty() || !address->password.empty()));
  return 0;
}
