#pragma once

// Messages between a peer and the launcher on a SOCK_SEQPACKET pair: one request, one answer with the same
// tag, in any order. Descriptors travel beside an answer. The bodies are in messages/.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "launcher/messages/verb.h"
#include "sys/descriptors.h"

namespace osb::launcher {

// The first byte of every message. Server and launcher come from one executable, so that another number means
// a mistake, which is better seen at once than guessed from what follows.
inline constexpr uint8_t kProtocolVersion = 5;

inline constexpr size_t kMaxMessage = 128 * 1024;
inline constexpr size_t kMaxDescriptors = sys::kMostDescriptors;

struct Request {
  uint64_t tag = 0;
  Verb verb = Verb::list;
  std::string body;
};

struct Answer {
  uint64_t tag = 0;
  int error = 0;        // errno, 0 for success
  uint32_t code = 0;    // osb::Code of the failure
  std::string message;  // on failure: which step, and why
  std::string body;
  std::vector<Fd> descriptors;
};

std::string encode(const Request& request);
Result<Request> decode_request(std::string_view bytes);
std::string encode_head(const Answer& answer);  // without the descriptors
Result<Answer> decode_answer(std::string_view bytes);

// One message with its descriptors. send() does not block: Code::exhausted when the peer does not read.
Result<void> send_message(int socket, std::string_view bytes, const std::vector<Fd>& descriptors);
struct Received {
  std::string bytes;  // empty: the other side is gone
  std::vector<Fd> descriptors;
};
Result<Received> receive_message(int socket);  // Code::exhausted when nothing is there

}  // namespace osb::launcher
