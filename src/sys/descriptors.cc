#include "sys/descriptors.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace osb::sys {

int send_with_descriptors(int socket, std::string_view bytes, std::span<const int> descriptors, int flags) {
  if (descriptors.size() > kMostDescriptors) return -E2BIG;
  struct iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  struct msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  if (!descriptors.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  while (true) {
    ssize_t sent = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(bytes.size())) return 0;
    if (sent >= 0) return -EMSGSIZE;  // a stream took a part of it; nobody goes on from there
    if (errno != EINTR) return -errno;
  }
}

Result<size_t> receive_with_descriptors(int socket, std::span<char> bytes, std::vector<Fd>& descriptors,
                                        int flags) {
  struct iovec part{bytes.data(), bytes.size()};
  alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostDescriptors)] = {};
  struct msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  while ((n = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC)) < 0) {
    if (errno != EINTR) return fail_errno("receive a message");
  }
  std::vector<Fd> arrived;
  for (struct cmsghdr* h = CMSG_FIRSTHDR(&message); h; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
      arrived.emplace_back(fd);
    }
  }
  if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) return fail(Code::too_large, "the message was cut");
  descriptors = std::move(arrived);
  return static_cast<size_t>(n);
}

}  // namespace osb::sys
