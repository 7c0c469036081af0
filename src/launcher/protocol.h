#pragma once

// Messages between server and launcher on a SOCK_SEQPACKET pair: one request, one answer with the same tag,
// in any order. Descriptors travel beside an answer.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "launcher/plan.h"
#include "launcher/started.h"

namespace osb::launcher {

// The first byte of every message. Server and launcher come from one executable, so that another number means
// a mistake, which is better seen at once than guessed from what follows.
inline constexpr uint8_t kProtocolVersion = 2;

inline constexpr size_t kMaxMessage = 128 * 1024;
inline constexpr size_t kMaxDescriptors = 16;
inline constexpr size_t kListPage = 512;

enum class Verb : uint8_t {
  start = 1,  // body: a plan              -> Started, descriptor: pidfd
  stop,       // body: id                  -> nothing; all processes are gone, the files stay
  destroy,    // body: id                  -> nothing; everything is gone
  list,     // body: last id seen or ""  -> Listed: at most kListPage ids in order, those behind the given one
  adopt,    // body: id, pid, ticks      -> descriptor: pidfd, a byte: 1 when frozen; not_found only when that
            //                              process is gone
  sockets,  // body: id, count           -> descriptors: unconnected TCP sockets inside the sandbox
  ooms,     // body: id                  -> a number: processes killed for memory
  freeze,   // body: id                  -> nothing; no process of it runs any more
  thaw,     // body: id                  -> a byte: 1 when it was frozen, or about to be
  recall,  // body: id                  -> its record or "", pid and ticks of its first process, 0 without one
  record,  // body: id, record          -> nothing; see records.h
  health,  // body: nothing             -> nothing; an error when no sandbox could be made now
};

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
std::string encode(const Started& started);
Result<Started> decode_started(std::string_view bytes);

// One message with its descriptors. send() does not block: Code::exhausted when the peer does not read.
Result<void> send_message(int socket, std::string_view bytes, const std::vector<Fd>& descriptors);
struct Received {
  std::string bytes;  // empty: the other side is gone
  std::vector<Fd> descriptors;
};
Result<Received> receive_message(int socket);  // Code::exhausted when nothing is there

}  // namespace osb::launcher
