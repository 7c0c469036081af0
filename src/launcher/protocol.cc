#include "launcher/protocol.h"

#include <sys/socket.h>

#include "launcher/bytes.h"
#include "sys/descriptors.h"

namespace osb::launcher {
namespace {

Result<void> check_version(ByteReader& in) {
  auto version = in.number<uint8_t>();
  if (version == kProtocolVersion) return {};
  return fail(Code::unsupported, "server and launcher are of different builds: protocol " +
                                     std::to_string(version) + " instead of " +
                                     std::to_string(kProtocolVersion) + "; start the service again");
}

}  // namespace

std::string encode(const Request& request) {
  ByteWriter out;
  out.number(kProtocolVersion);
  out.number(request.tag);
  out.number(static_cast<uint8_t>(request.verb));
  out.string(request.body);
  return out.take();
}

Result<Request> decode_request(std::string_view bytes) {
  ByteReader in(bytes);
  TRY(check_version(in));
  Request request;
  request.tag = in.number<uint64_t>();
  auto verb = in.number<uint8_t>();
  request.body = in.string();
  if (!in.complete() || verb < 1 || verb > static_cast<uint8_t>(kLastVerb)) {
    return fail(Code::corrupt, "launcher request");
  }
  request.verb = static_cast<Verb>(verb);
  return request;
}

std::string encode_head(const Answer& answer) {
  ByteWriter out;
  out.number(kProtocolVersion);
  out.number(answer.tag);
  out.number(static_cast<int32_t>(answer.error));
  out.number(answer.code);
  out.string(answer.message);
  out.string(answer.body);
  return out.take();
}

Result<Answer> decode_answer(std::string_view bytes) {
  ByteReader in(bytes);
  TRY(check_version(in));
  Answer answer;
  answer.tag = in.number<uint64_t>();
  answer.error = in.number<int32_t>();
  answer.code = in.number<uint32_t>();
  answer.message = in.string();
  answer.body = in.string();
  if (!in.complete()) return fail(Code::corrupt, "launcher answer");
  return answer;
}

Result<void> send_message(int socket, std::string_view bytes, const std::vector<Fd>& descriptors) {
  int borrowed[kMaxDescriptors];
  if (descriptors.size() > kMaxDescriptors)
    return fail(Code::too_large, "too many descriptors in one message");
  for (size_t i = 0; i < descriptors.size(); ++i) borrowed[i] = descriptors[i].get();
  int status = sys::send_with_descriptors(socket, bytes, {borrowed, descriptors.size()}, MSG_DONTWAIT);
  if (status < 0) return fail_errno("send to the launcher's peer", -status);
  return {};
}

Result<Received> receive_message(int socket) {
  static thread_local char buffer[kMaxMessage];
  Received received;
  size_t size =
      TRY(in_context("the launcher's peer",
                     sys::receive_with_descriptors(socket, buffer, received.descriptors, MSG_DONTWAIT)));
  received.bytes.assign(buffer, size);
  return received;
}

}  // namespace osb::launcher
