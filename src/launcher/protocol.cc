#include "launcher/protocol.h"

#include <sys/socket.h>

#include <cstring>

#include "launcher/bytes.h"

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
  struct iovec part{};
  part.iov_base = const_cast<char*>(bytes.data());
  part.iov_len = bytes.size();
  struct msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  if (descriptors.size() > kMaxDescriptors)
    return fail(Code::too_large, "too many descriptors in one message");
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    for (size_t i = 0; i < descriptors.size(); ++i) {
      int fd = descriptors[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return fail_errno("send to the launcher's peer");
  }
  return {};
}

Result<Received> receive_message(int socket) {
  static thread_local char buffer[kMaxMessage];
  Received received;
  struct iovec part{};
  part.iov_base = buffer;
  part.iov_len = sizeof buffer;
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)] = {};
  struct msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  while ((n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT)) < 0) {
    if (errno != EINTR) return fail_errno("receive from the launcher's peer");
  }
  received.bytes.assign(buffer, static_cast<size_t>(n));
  for (struct cmsghdr* h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
      received.descriptors.emplace_back(fd);
    }
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return fail(Code::too_large, "launcher message was cut");
  return received;
}

}  // namespace osb::launcher
