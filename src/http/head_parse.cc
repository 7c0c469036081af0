#include "http/head_parse.h"

#include <array>
#include <cstring>

#include "base/strings.h"
#include "http/head_check.h"

namespace osb::http {
namespace {

enum : uint8_t { kToken = 1, kValue = 2, kTarget = 4, kUpper = 8, kHost = 16 };

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> classes{};
  auto add = [&](std::string_view characters, uint8_t bits) {
    for (char c : characters) classes[static_cast<uint8_t>(c)] |= bits;
  };
  for (int c = 0x21; c < 0x7f; ++c) classes[static_cast<size_t>(c)] |= kValue | kTarget;
  for (int c = 0x80; c < 0x100; ++c) classes[static_cast<size_t>(c)] |= kValue;  // UTF-8 in values is common
  classes['#'] &= static_cast<uint8_t>(~kTarget);                                // a fragment is never sent
  add(" \t", kValue);
  add("ABCDEFGHIJKLMNOPQRSTUVWXYZ", kToken | kUpper | kHost);
  add("abcdefghijklmnopqrstuvwxyz0123456789", kToken | kHost);
  add("!#$%&'*+-.^_`|~", kToken);
  add("-_", kUpper);
  add("-._~%", kHost);
  return classes;
}
constexpr auto kClasses = make_classes();

constexpr size_t kUsualFields = 8;

bool all_of(std::string_view text, uint8_t bits) {
  for (char c : text) {
    if (!(kClasses[static_cast<uint8_t>(c)] & bits)) return false;
  }
  return true;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The next line without its CRLF. find_head_end has checked line ends already when the bytes came from a
// socket; check_request_head is called with anything.
std::optional<std::string_view> take_line(std::string_view& head) {
  size_t at = head.find('\n');
  if (at == head.npos || at == 0 || head[at - 1] != '\r') return std::nullopt;
  std::string_view line = head.substr(0, at - 1);
  head.remove_prefix(at + 1);
  return line;
}

// A name or an address, and maybe a port. Whatever else a URI may have here (user names, percent signs in the
// port, blanks) has been used to make two servers see two hosts.
bool is_host(std::string_view text) {
  size_t end;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos || end < 3) return false;
    for (char c : text.substr(1, end - 1)) {
      if (c != ':' && !(kClasses[static_cast<uint8_t>(c)] & kHost)) return false;
    }
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    if (end == 0 || !all_of(text.substr(0, end), kHost)) return false;
  }
  std::string_view port = text.substr(end);
  if (port.empty()) return true;
  if (port[0] != ':' || port.size() > 6) return false;
  for (char c : port.substr(1)) {
    if (!is_digit(c)) return false;
  }
  return true;
}

std::optional<uint64_t> content_length(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;  // octal to some
  uint64_t value = 0;
  for (char c : text) {
    if (!is_digit(c)) return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

// What the fields add up to, collected while they are read.
struct FieldFacts {
  bool request = false;
  int hosts = 0, lengths = 0, codings = 0;
  bool unknown_coding = false;
  bool names_upgrade = false, has_upgrade = false, expects = false;
};

std::optional<Rejection> note_field(std::string_view name, std::string_view value, FieldFacts& facts,
                                    Framing& framing) {
  switch (name.size()) {
    case 4:
      if (facts.request && iequals(name, "host")) {
        ++facts.hosts;
        if (!is_host(value)) return Rejection{400, "Host is not a host name with an optional port"};
      }
      break;
    case 6:
      if (iequals(name, "expect")) facts.expects = facts.expects || iequals(value, "100-continue");
      break;
    case 7:
      if (iequals(name, "upgrade")) facts.has_upgrade = true;
      break;
    case 10:
      if (iequals(name, "connection")) {
        framing.close = framing.close || list_contains(value, "close");
        facts.names_upgrade = facts.names_upgrade || list_contains(value, "upgrade");
      }
      break;
    case 14:
      if (iequals(name, "content-length")) {
        ++facts.lengths;
        framing.length = content_length(value);
        if (!framing.length) return Rejection{400, "Content-Length is not one plain decimal number"};
      }
      break;
    case 17:
      if (iequals(name, "transfer-encoding")) {
        ++facts.codings;
        framing.chunked = value == "chunked";
        facts.unknown_coding = facts.unknown_coding || !framing.chunked;
      }
      break;
    default:
      break;
  }
  return std::nullopt;
}

// All lines behind the first, up to the empty one, which must be the last.
std::optional<Rejection> parse_fields(std::string_view rest, bool http_1_1, Headers& out, FieldFacts& facts,
                                      Framing& framing) {
  while (true) {
    auto line = take_line(rest);
    if (!line) return Rejection{400, "every line of the head must end with CRLF"};
    if (line->empty()) break;
    std::string_view name, value;
    if (auto rejected = split_field(*line, name, value)) return rejected;
    if (out.size() == kMaxHeaderFields) return Rejection{431, "too many header fields"};
    if (auto rejected = note_field(name, value, facts, framing)) return rejected;
    out.add(std::string(name), std::string(value));
  }
  if (!rest.empty()) return Rejection{400, "bytes behind the head"};
  if (facts.lengths > 1) return Rejection{400, "Content-Length is repeated"};
  if (facts.codings > 1) return Rejection{400, "Transfer-Encoding is repeated"};
  if (facts.codings && facts.lengths)
    return Rejection{400, "Transfer-Encoding and Content-Length exclude each other"};
  if (facts.unknown_coding) return Rejection{501, "the only transfer coding served is 'chunked'"};
  if (facts.codings && !http_1_1) return Rejection{400, "HTTP/1.0 has no transfer codings"};
  framing.upgrade = http_1_1 && facts.names_upgrade && facts.has_upgrade;
  framing.expect_continue = http_1_1 && facts.expects;
  framing.close = framing.close || !http_1_1;
  return std::nullopt;
}

std::optional<Rejection> parse_version(std::string_view text, bool& http_1_1) {
  if (text == "HTTP/1.1" || text == "HTTP/1.0") {
    http_1_1 = text.back() == '1';
    return std::nullopt;
  }
  bool plausible = text.size() == 8 && text.starts_with("HTTP/") && is_digit(text[5]) && text[6] == '.' &&
                   is_digit(text[7]);
  if (plausible) return Rejection{505, "only HTTP/1.1 and HTTP/1.0 are served here"};
  return Rejection{400, "the first line must end with the protocol version, as in HTTP/1.1"};
}

}  // namespace

bool is_token(std::string_view text) { return !text.empty() && all_of(text, kToken); }
bool is_field_value(std::string_view text) { return all_of(text, kValue); }
bool is_request_target(std::string_view text) { return text.starts_with('/') && all_of(text, kTarget); }

bool list_contains(std::string_view list, std::string_view word) {
  while (true) {
    size_t comma = list.find(',');
    if (iequals(trim_blanks(list.substr(0, comma)), word)) return true;
    if (comma == list.npos) return false;
    list.remove_prefix(comma + 1);
  }
}

std::optional<Rejection> split_field(std::string_view line, std::string_view& name, std::string_view& value) {
  if (line.starts_with(' ') || line.starts_with('\t'))
    return Rejection{400, "folded header lines are not accepted"};
  size_t colon = line.find(':');
  if (colon == line.npos) return Rejection{400, "a header line has no colon"};
  name = line.substr(0, colon);
  value = trim_blanks(line.substr(colon + 1));
  if (!is_token(name)) return Rejection{400, "a header name has a character that is not allowed in names"};
  if (!is_field_value(value)) return Rejection{400, "a header value has a control character"};
  return std::nullopt;
}

HeadScan find_head_end(std::string_view bytes, size_t& scanned) {
  using State = HeadScan::State;
  if (!bytes.empty() && !(kClasses[static_cast<uint8_t>(bytes[0])] & kToken)) {
    return {State::malformed, 0, "this is not the start of an HTTP/1.1 message"};
  }
  while (scanned < bytes.size()) {
    const void* found = std::memchr(bytes.data() + scanned, '\n', bytes.size() - scanned);
    if (!found) {
      scanned = bytes.size();
      break;
    }
    size_t at = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
    if (at == 0 || bytes[at - 1] != '\r')
      return {State::malformed, 0, "every line of the head must end with CRLF"};
    scanned = at + 1;
    if (at >= 3 && bytes[at - 2] == '\n') return {State::complete, scanned, {}};
  }
  return {};
}

std::optional<Rejection> parse_request_head(std::string_view head, RequestHead& out, Framing& framing) {
  auto first = take_line(head);
  if (!first) return Rejection{400, "every line of the head must end with CRLF"};
  size_t blank = first->find(' ');
  size_t last = first->rfind(' ');
  if (blank == first->npos || blank == last)
    return Rejection{400, "the request line must be METHOD /target HTTP/1.1"};
  std::string_view method = first->substr(0, blank);
  std::string_view target = first->substr(blank + 1, last - blank - 1);
  if (!is_token(method)) return Rejection{400, "the method is not a token"};
  if (auto rejected = parse_version(first->substr(last + 1), out.http_1_1)) return rejected;
  if (method.size() > 32 || !all_of(method, kUpper))
    return Rejection{501, "unknown method; methods are upper case"};
  if (method == "CONNECT" || method == "TRACE") return Rejection{501, "this method is not served"};
  if (target.size() > kMaxTargetBytes) return Rejection{414, "the request target is too long"};
  if (!target.starts_with('/'))
    return Rejection{400, "the request target must be a path: no scheme, no authority, no '*'"};
  if (!is_request_target(target)) {
    return Rejection{
        400, "the request target has a blank, a '#', a control or a non-ASCII byte; percent-encode it"};
  }
  FieldFacts facts{.request = true};
  out.headers = Headers();
  out.headers.reserve(kUsualFields);
  if (auto rejected = parse_fields(head, out.http_1_1, out.headers, facts, framing)) return rejected;
  if (facts.hosts > 1) return Rejection{400, "Host is repeated"};
  if (facts.hosts == 0 && out.http_1_1) return Rejection{400, "Host is missing"};
  out.method = method;
  out.target = target;
  return std::nullopt;
}

std::optional<Rejection> parse_response_head(std::string_view head, ResponseHead& out, Framing& framing) {
  auto first = take_line(head);
  if (!first) return Rejection{502, "every line of the head must end with CRLF"};
  bool http_1_1 = true;
  if (auto rejected = parse_version(first->substr(0, 8), http_1_1)) return rejected;
  std::string_view status = first->substr(8);
  // " 200", " 200 " and " 200 any reason"
  bool shaped = status.size() >= 4 && status[0] == ' ' && status[1] >= '1' && status[1] <= '9' &&
                is_digit(status[2]) && is_digit(status[3]) && (status.size() == 4 || status[4] == ' ') &&
                is_field_value(status);
  if (!shaped) return Rejection{502, "the status line is malformed"};
  out.status = (status[1] - '0') * 100 + (status[2] - '0') * 10 + (status[3] - '0');
  FieldFacts facts;
  out.headers = Headers();
  out.headers.reserve(kUsualFields);
  return parse_fields(head, http_1_1, out.headers, facts, framing);
}

}  // namespace osb::http
