#include "http/head_check.h"

#include "http/head_parse.h"

namespace osb::http {

Result<void> check_request_head(std::string_view head) {
  if (head.size() > kMaxHeadBytes) return fail(Code::too_large, "the head is larger than 64 KiB");
  RequestHead parsed;
  Framing framing;
  auto rejected = parse_request_head(head, parsed, framing);
  if (!rejected) return {};
  Code code = Code::invalid_argument;
  if (rejected->status == 414 || rejected->status == 431) code = Code::too_large;
  if (rejected->status == 501 || rejected->status == 505) code = Code::unsupported;
  return fail(code, std::string(rejected->reason));
}

}  // namespace osb::http
