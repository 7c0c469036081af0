#pragma once

// DNS messages (RFC 1035, 6891, 9460) from sandboxes and from name servers: both are strangers. Nothing of
// theirs is passed on as bytes. A question is taken apart and asked anew; an answer is taken apart, filtered
// and written anew, so that what nobody here understands does not travel.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/egress_target.h"

namespace osb::egress {

using sandbox::IpAddress;

enum DnsType : uint16_t {
  kDnsA = 1,
  kDnsNs = 2,
  kDnsCname = 5,
  kDnsSoa = 6,
  kDnsPtr = 12,
  kDnsMx = 15,
  kDnsAaaa = 28,
  kDnsSrv = 33,
  kDnsDname = 39,
  kDnsOpt = 41,
  kDnsSvcb = 64,
  kDnsHttps = 65,
};
enum DnsCode : uint8_t {
  kDnsNoError = 0,
  kDnsFormatError = 1,
  kDnsServerFailure = 2,
  kDnsNoName = 3,
  kDnsNotImplemented = 4,
  kDnsRefused = 5
};

struct DnsQuestion {
  uint16_t id = 0;
  std::string name;       // as it was asked: dots between labels, none at the end; "" is the root
  std::string wire_name;  // the same as bytes of the message
  uint16_t type = 0;
  bool recursion = true;  // RD
  bool checking_disabled = false;
  bool wants_dnssec = false;
  uint16_t most_bytes = 512;  // that the asker takes over UDP
};

// Nothing: not even worth an answer. Otherwise `refusal` is 0, or the code to answer with.
struct ParsedQuestion {
  DnsQuestion question;
  uint8_t refusal = kDnsNoError;
};
std::optional<ParsedQuestion> parse_question(std::string_view message);

// The question as we ask it, under an id of ours.
std::string encode_question(const DnsQuestion& question, uint16_t id);

// An answer without records.
std::string encode_answer(const DnsQuestion& question, uint8_t code, bool truncated = false);

struct DnsRecord {
  std::string owner;  // lower case, dots between labels
  uint16_t type = 0;
  uint32_t ttl = 0;
  std::string data;                          // names in it are whole
  std::optional<IpAddress> address() const;  // of an A or AAAA record
};

struct DnsAnswer {
  uint8_t code = 0;
  bool truncated = false;
  bool authentic = false;            // AD, when it was asked for
  std::vector<DnsRecord> answers;    // what belongs to the question: its own and those of its aliases
  std::vector<DnsRecord> authority;  // SOA only: how long a "no" may be remembered
};

// Code::corrupt unless it is an answer to this question under that id.
Result<DnsAnswer> parse_answer(std::string_view message, const DnsQuestion& question, uint16_t id);

// For the asker: cut to `most` bytes with the mark that says so. HTTPS and SVCB records lose `ech`, so that
// the names of TLS connections stay visible.
std::string encode_answer(const DnsQuestion& question, const DnsAnswer& answer, size_t most);

}  // namespace osb::egress
