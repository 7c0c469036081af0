#include "sys/netlink.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstddef>
#include <cstring>

#include "base/fd.h"

namespace osb::sys {
namespace {

// The kernel answers while it takes the message; this is for one that lost an answer for want of memory.
constexpr struct timeval kPatience{5, 0};

}  // namespace

void NetlinkBatch::pad() { bytes_.resize(NLMSG_ALIGN(bytes_.size()), '\0'); }

void NetlinkBatch::begin_message(uint16_t type, uint16_t flags, std::string_view head) {
  message_ = bytes_.size();
  struct nlmsghdr header{};
  header.nlmsg_type = type;
  header.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
  header.nlmsg_seq = ++sequence_;
  if (flags & NLM_F_ACK) ++waiting_;
  bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
  bytes_.append(head);
  pad();
}

void NetlinkBatch::end() {
  auto size = static_cast<uint32_t>(bytes_.size() - message_);
  std::memcpy(bytes_.data() + message_ + offsetof(nlmsghdr, nlmsg_len), &size, sizeof size);
}

void NetlinkBatch::attribute(uint16_t type, std::string_view value) {
  struct nlattr header{static_cast<uint16_t>(NLA_HDRLEN + value.size()), type};
  bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
  bytes_.append(value);
  pad();
}

void NetlinkBatch::text(uint16_t type, std::string_view value) { attribute(type, std::string(value) + '\0'); }

void NetlinkBatch::number(uint16_t type, uint32_t value) {
  attribute(type, {reinterpret_cast<const char*>(&value), sizeof value});
}

void NetlinkBatch::big_number(uint16_t type, uint32_t value) { number(type, htonl(value)); }

size_t NetlinkBatch::begin_nested(uint16_t type) {
  size_t where = bytes_.size();
  struct nlattr header{0, static_cast<uint16_t>(type | NLA_F_NESTED)};
  bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
  return where;
}

void NetlinkBatch::end_nested(size_t where) {
  auto size = static_cast<uint16_t>(bytes_.size() - where);
  std::memcpy(bytes_.data() + where + offsetof(nlattr, nla_len), &size, sizeof size);
}

Result<void> NetlinkBatch::transact(int protocol, std::string_view what) const {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  if (!socket.valid()) return fail_errno(what);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  struct sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  ssize_t sent = ::sendto(socket.get(), bytes_.data(), bytes_.size(), 0,
                          reinterpret_cast<struct sockaddr*>(&kernel), sizeof kernel);
  if (sent < 0) return fail_errno(what);
  alignas(nlmsghdr) char answers[8192];
  for (uint32_t left = waiting_; left > 0;) {
    ssize_t size = ::recv(socket.get(), answers, sizeof answers, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(what);
    auto rest = static_cast<unsigned>(size);
    for (auto* m = reinterpret_cast<struct nlmsghdr*>(answers); NLMSG_OK(m, rest); m = NLMSG_NEXT(m, rest)) {
      if (m->nlmsg_type != NLMSG_ERROR) continue;
      int error = reinterpret_cast<struct nlmsgerr*>(NLMSG_DATA(m))->error;
      if (error != 0) return fail_errno(what, -error);
      if (left > 0) --left;
    }
  }
  return {};
}

}  // namespace osb::sys
