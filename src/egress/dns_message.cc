#include "egress/dns_message.h"

#include <algorithm>
#include <map>

#include "base/strings.h"

namespace osb::egress {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kMostName = 255;
constexpr size_t kMostLabel = 63;
constexpr size_t kMostRecords = 512;
constexpr uint16_t kClassIn = 1;
constexpr uint16_t kOurBytes = 1232;  // no fragments on any path
constexpr uint16_t kEchKey = 5;

constexpr uint16_t kResponse = 0x8000, kOpcode = 0x7800, kTruncated = 0x0200, kRecursion = 0x0100,
                   kRecursionThere = 0x0080, kAuthentic = 0x0020, kNoChecking = 0x0010, kCode = 0x000f;

// Bytes that are read in order; what is not there fails for good.
class Reader {
 public:
  Reader(std::string_view all, size_t at = 0) : all_(all), at_(at) {}
  bool failed() const { return failed_; }
  size_t at() const { return at_; }
  size_t left() const { return failed_ ? 0 : all_.size() - at_; }
  uint8_t u8() { return static_cast<uint8_t>(bytes(1).empty() ? 0 : all_[at_ - 1]); }
  uint16_t u16() {
    auto high = u8();
    return static_cast<uint16_t>(high << 8 | u8());
  }
  uint32_t u32() {
    uint32_t high = u16();
    return high << 16 | u16();
  }
  std::string_view bytes(size_t count) {
    if (failed_ || count > all_.size() - at_) {
      failed_ = true;
      return {};
    }
    at_ += count;
    return all_.substr(at_ - count, count);
  }
  void fail() { failed_ = true; }

  // A name, in the form it has without pointers (lengths and labels, a zero at the end).
  enum class Pointers { allowed, refused };
  std::string name(Pointers pointers) {
    std::string wire;
    size_t from = at_, limit = at_;
    bool jumped = false;
    while (!failed_) {
      if (from >= all_.size()) return fail(), std::string();
      auto length = static_cast<uint8_t>(all_[from]);
      if ((length & 0xc0) == 0xc0) {
        if (pointers == Pointers::refused || from + 1 >= all_.size()) return fail(), std::string();
        size_t to = static_cast<size_t>(length & 0x3f) << 8 | static_cast<uint8_t>(all_[from + 1]);
        if (!jumped) at_ = from + 2;
        jumped = true;
        // Only ever backwards: no loop can be made of that.
        if (to >= limit) return fail(), std::string();
        from = limit = to;
        continue;
      }
      if (length > kMostLabel || from + 1 + length > all_.size() || wire.size() + length + 1 > kMostName)
        return fail(), std::string();
      wire.append(all_.substr(from, 1U + length));
      from += 1U + length;
      if (length == 0) break;
    }
    if (!jumped) at_ = from;
    return failed_ ? std::string() : wire;
  }

 private:
  std::string_view all_;
  size_t at_ = 0;
  bool failed_ = false;
};

void put16(std::string& out, uint16_t value) {
  out.push_back(static_cast<char>(value >> 8));
  out.push_back(static_cast<char>(value & 0xff));
}
void put32(std::string& out, uint32_t value) {
  put16(out, static_cast<uint16_t>(value >> 16));
  put16(out, static_cast<uint16_t>(value & 0xffff));
}
void set16(std::string& out, size_t at, uint16_t value) {
  out[at] = static_cast<char>(value >> 8);
  out[at + 1] = static_cast<char>(value & 0xff);
}

// Dots between labels. Dots and odd bytes inside of a label become '?', which no rule and no host has.
std::string dotted(std::string_view wire) {
  std::string out;
  for (size_t at = 0; at < wire.size() && wire[at] != 0;) {
    auto length = static_cast<uint8_t>(wire[at]);
    if (!out.empty()) out.push_back('.');
    for (char c : wire.substr(at + 1, length)) out.push_back(c > ' ' && c < 0x7f && c != '.' ? c : '?');
    at += 1U + length;
  }
  return out;
}

bool same_name(std::string_view a, std::string_view b) { return iequals(a, b); }

void put_header(std::string& out, uint16_t id, uint16_t flags, uint16_t answers, uint16_t authority,
                uint16_t more) {
  put16(out, id);
  put16(out, flags);
  put16(out, 1);
  put16(out, answers);
  put16(out, authority);
  put16(out, more);
}

void put_question(std::string& out, const DnsQuestion& question) {
  out += question.wire_name;
  put16(out, question.type);
  put16(out, kClassIn);
}

uint16_t answer_flags(const DnsQuestion& question, uint8_t code, bool truncated, bool authentic) {
  return static_cast<uint16_t>(kResponse | kRecursionThere | code | (truncated ? kTruncated : 0) |
                               (authentic ? kAuthentic : 0) | (question.recursion ? kRecursion : 0) |
                               (question.checking_disabled ? kNoChecking : 0));
}

// Key and value pairs in rising order; without the one that would hide a name.
bool filter_parameters(Reader& in, std::string& out) {
  int last = -1;
  while (in.left() > 0) {
    uint16_t key = in.u16();
    std::string_view value = in.bytes(in.u16());
    if (in.failed() || key <= last) return false;
    last = key;
    if (key == kEchKey) continue;
    put16(out, key);
    put16(out, static_cast<uint16_t>(value.size()));
    out += value;
  }
  return true;
}

// The data of a record with its names made whole, or nothing when it is not what its type says.
std::optional<std::string> whole_data(std::string_view message, size_t at, size_t size, uint16_t type) {
  Reader in(message.substr(0, at + size), at);
  std::string out;
  switch (type) {
    case kDnsA:
      if (size != 4) return std::nullopt;
      out = in.bytes(size);
      break;
    case kDnsAaaa:
      if (size != 16) return std::nullopt;
      out = in.bytes(size);
      break;
    case kDnsNs:
    case kDnsCname:
    case kDnsPtr:
    case kDnsDname:
      out = in.name(Reader::Pointers::allowed);
      break;
    case kDnsMx:
      out = in.bytes(2);
      out += in.name(Reader::Pointers::allowed);
      break;
    case kDnsSrv:
      out = in.bytes(6);
      out += in.name(Reader::Pointers::allowed);
      break;
    case kDnsSoa:
      out = in.name(Reader::Pointers::allowed);
      out += in.name(Reader::Pointers::allowed);
      out += in.bytes(20);
      break;
    case kDnsSvcb:
    case kDnsHttps:
      out = in.bytes(2);
      out += in.name(Reader::Pointers::refused);
      if (!filter_parameters(in, out)) return std::nullopt;
      break;
    default:  // others have no names that could be shortened (RFC 3597)
      out = in.bytes(size);
  }
  if (in.failed() || in.left() != 0) return std::nullopt;
  return out;
}

// The records of one section; false when they are not what they should be.
bool read_records(Reader& in, std::string_view message, uint16_t count, std::vector<DnsRecord>& into) {
  if (count > kMostRecords) return false;
  for (uint16_t i = 0; i < count; ++i) {
    DnsRecord record;
    record.owner = to_lower(dotted(in.name(Reader::Pointers::allowed)));
    record.type = in.u16();
    uint16_t klass = in.u16();
    record.ttl = in.u32();
    uint16_t size = in.u16();
    size_t at = in.at();
    in.bytes(size);
    if (in.failed()) return false;
    if (record.type == kDnsOpt) continue;
    auto data = whole_data(message, at, size, record.type);
    if (!data || klass != kClassIn) return false;
    if (record.ttl > 0x7fffffff) record.ttl = 0;
    record.data = std::move(*data);
    into.push_back(std::move(record));
  }
  return true;
}

// What hangs together with the question: its records, and those of the names that it is an alias for. The
// rest was not asked for, and must not be learned.
std::vector<DnsRecord> belonging(std::vector<DnsRecord> all, const DnsQuestion& question) {
  std::vector<DnsRecord> kept;
  std::string name = to_lower(question.name);
  std::vector<std::string> names = {name};
  constexpr size_t kMostAliases = 16;
  // In any order: servers are not bound to one.
  for (size_t before = 0; names.size() != before && names.size() < kMostAliases;) {
    before = names.size();
    for (const DnsRecord& record : all) {
      if (record.type != kDnsCname || std::ranges::find(names, record.owner) == names.end()) continue;
      std::string target = to_lower(dotted(record.data));
      if (std::ranges::find(names, target) == names.end()) names.push_back(std::move(target));
    }
  }
  for (DnsRecord& record : all) {
    if (std::ranges::find(names, record.owner) != names.end()) kept.push_back(std::move(record));
  }
  return kept;
}

void put_name(std::string& out, const std::string& owner, const DnsQuestion& question) {
  if (same_name(owner, question.name)) return put16(out, 0xc000 | kHeader);
  for (std::string_view label : split(owner, '.')) {
    if (label.empty()) continue;
    out.push_back(static_cast<char>(label.size()));
    out += label;
  }
  out.push_back('\0');
}

void put_record(std::string& out, const DnsRecord& record, const DnsQuestion& question) {
  put_name(out, record.owner, question);
  put16(out, record.type);
  put16(out, kClassIn);
  put32(out, record.ttl);
  put16(out, static_cast<uint16_t>(record.data.size()));
  out += record.data;
}

}  // namespace

std::optional<ParsedQuestion> parse_question(std::string_view message) {
  Reader in(message);
  ParsedQuestion parsed;
  DnsQuestion& question = parsed.question;
  question.id = in.u16();
  uint16_t flags = in.u16();
  uint16_t questions = in.u16(), answers = in.u16(), authority = in.u16(), more = in.u16();
  if (in.failed() || (flags & kResponse)) return std::nullopt;
  question.recursion = flags & kRecursion;
  question.checking_disabled = flags & kNoChecking;
  auto refuse = [&](uint8_t code) {
    parsed.refusal = code;
    return parsed;
  };
  if (questions == 1) {
    question.wire_name = in.name(Reader::Pointers::refused);
    question.type = in.u16();
  }
  uint16_t klass = questions == 1 ? in.u16() : kClassIn;
  if (in.failed() || questions != 1) {
    question.wire_name.assign(1, '\0');
    question.type = 0;
    return refuse(kDnsFormatError);
  }
  question.name = dotted(question.wire_name);
  if (flags & kOpcode) return refuse(kDnsNotImplemented);
  if (answers != 0 || authority != 0 || more > 1 || klass != kClassIn) return refuse(kDnsFormatError);
  if (more == 1) {
    std::string owner = in.name(Reader::Pointers::refused);
    uint16_t type = in.u16();
    question.most_bytes = std::max<uint16_t>(512, in.u16());
    uint32_t extended = in.u32();
    in.bytes(in.u16());
    // Signed and otherwise adorned questions are not for a relay.
    if (in.failed() || type != kDnsOpt || owner.size() != 1) return refuse(kDnsFormatError);
    question.wants_dnssec = extended & 0x8000;
  }
  if (in.left() != 0) return refuse(kDnsFormatError);
  return parsed;
}

std::string encode_question(const DnsQuestion& question, uint16_t id) {
  std::string out;
  put_header(out, id, static_cast<uint16_t>(kRecursion | (question.checking_disabled ? kNoChecking : 0)), 0,
             0, 1);
  // In lower case: the case of letters would be a place to hide something.
  DnsQuestion plain = question;
  plain.wire_name = to_lower(question.wire_name);
  put_question(out, plain);
  out.push_back('\0');
  put16(out, kDnsOpt);
  put16(out, kOurBytes);
  put32(out, question.wants_dnssec ? 0x8000 : 0);
  put16(out, 0);
  return out;
}

std::string encode_answer(const DnsQuestion& question, uint8_t code, bool truncated) {
  std::string out;
  put_header(out, question.id, answer_flags(question, code, truncated, false), 0, 0, 0);
  put_question(out, question);
  return out;
}

std::optional<IpAddress> DnsRecord::address() const {
  IpAddress address;
  if (type == kDnsA && data.size() == 4) {
    std::copy(data.begin(), data.end(), address.bytes.begin());
    return address;
  }
  if (type != kDnsAaaa || data.size() != 16) return std::nullopt;
  address.family = IpAddress::Family::v6;
  std::copy(data.begin(), data.end(), address.bytes.begin());
  return sandbox::plain(address);
}

Result<DnsAnswer> parse_answer(std::string_view message, const DnsQuestion& question, uint16_t id) {
  auto corrupt = [](const char* why) {
    return fail(Code::corrupt, std::string("a name server's answer: ") + why);
  };
  Reader in(message);
  uint16_t answer_id = in.u16(), flags = in.u16();
  uint16_t questions = in.u16(), answers = in.u16(), authority = in.u16();
  in.u16();
  if (in.failed() || answer_id != id || !(flags & kResponse) || (flags & kOpcode))
    return corrupt("not to this question");
  DnsAnswer answer;
  answer.code = flags & kCode;
  answer.truncated = flags & kTruncated;
  answer.authentic = question.wants_dnssec && (flags & kAuthentic);
  // Servers that understand nothing of a question do not repeat it.
  if (questions == 0 && answer.code != kDnsNoError) return answer;
  if (questions != 1) return corrupt("not to this question");
  std::string name = in.name(Reader::Pointers::refused);
  uint16_t type = in.u16(), klass = in.u16();
  if (in.failed() || !same_name(name, question.wire_name) || type != question.type || klass != kClassIn)
    return corrupt("not to this question");
  if (answer.truncated) return answer;
  std::vector<DnsRecord> all;
  if (!read_records(in, message, answers, all)) return corrupt("its records cannot be read");
  answer.answers = belonging(std::move(all), question);
  if (!read_records(in, message, authority, answer.authority)) return corrupt("its records cannot be read");
  std::erase_if(answer.authority, [](const DnsRecord& record) { return record.type != kDnsSoa; });
  return answer;
}

std::string encode_answer(const DnsQuestion& question, const DnsAnswer& answer, size_t most) {
  std::string out;
  put_header(out, question.id, answer_flags(question, answer.code, answer.truncated, answer.authentic),
             static_cast<uint16_t>(answer.answers.size()), static_cast<uint16_t>(answer.authority.size()), 0);
  put_question(out, question);
  for (const DnsRecord& record : answer.answers) put_record(out, record, question);
  for (const DnsRecord& record : answer.authority) put_record(out, record, question);
  if (question.most_bytes > 512 || question.wants_dnssec) {
    set16(out, 10, 1);
    out.push_back('\0');
    put16(out, kDnsOpt);
    put16(out, kOurBytes);
    put32(out, question.wants_dnssec ? 0x8000 : 0);
    put16(out, 0);
  }
  if (out.size() > most) return encode_answer(question, answer.code, true);
  return out;
}

}  // namespace osb::egress
