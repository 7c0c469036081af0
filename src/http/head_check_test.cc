#include "http/head_check.h"

#include <gtest/gtest.h>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/src.hpp>

#include "http/head_parse.h"

namespace osb::http {
namespace {

namespace beast = boost::beast;

struct Case {
  const char* why;
  std::string head;
  Code code = Code::invalid_argument;
};

std::string get(const std::string& fields) { return "GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }
std::string post(const std::string& fields) { return "POST /x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }
std::string line(const std::string& first) { return first + "\r\nHost: a\r\n\r\n"; }

std::string many_fields(size_t count) {
  std::string fields;
  for (size_t i = 0; i < count; ++i) fields += "X-" + std::to_string(i) + ": v\r\n";
  return fields;
}

const std::vector<Case> kRejected = {
    // The request line.
    {"empty", ""},
    {"only an empty line", "\r\n"},
    {"empty line first", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
    {"no empty line at the end", "GET / HTTP/1.1\r\nHost: a\r\n"},
    {"no end of line", "GET / HTTP/1.1"},
    {"HTTP/0.9", "GET /\r\n\r\n"},
    {"no version", line("GET /")},
    {"no method", line(" / HTTP/1.1")},
    {"no target", line("GET HTTP/1.1")},
    {"empty target", line("GET  HTTP/1.1")},
    {"two blanks before the target", line("GET  / HTTP/1.1")},
    {"two blanks before the version", line("GET /  HTTP/1.1")},
    {"blank at the end", line("GET / HTTP/1.1 ")},
    {"blank first", line(" GET / HTTP/1.1")},
    {"tab as separator", line("GET\t/\tHTTP/1.1")},
    {"vertical tab as separator", line("GET /\vHTTP/1.1")},
    {"blank in the target", line("GET /a b HTTP/1.1")},
    {"two requests in one line", line("GET / HTTP/1.1 GET / HTTP/1.1")},
    {"lower-case version", line("GET / http/1.1")},
    {"mixed-case version", line("GET / Http/1.1")},
    {"version with two digits", line("GET / HTTP/1.10")},
    {"version with leading zero", line("GET / HTTP/01.1")},
    {"version without minor", line("GET / HTTP/1")},
    {"version with sign", line("GET / HTTP/+1.1")},
    {"another protocol", line("GET / ICY/1.1")},
    {"version with bytes behind", line("GET / HTTP/1.1x")},
    {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\n", Code::unsupported},
    {"HTTP/2.0", line("GET / HTTP/2.0"), Code::unsupported},
    {"HTTP/1.2", line("GET / HTTP/1.2"), Code::unsupported},
    {"HTTP/0.9 said aloud", line("GET / HTTP/0.9"), Code::unsupported},
    {"method with a bad character", line("G(T / HTTP/1.1")},
    {"method with a NUL", line(std::string("G\0T / HTTP/1.1", 14))},
    {"method with a colon", line("GET: / HTTP/1.1")},
    {"method not ASCII", line("G\xc3\x89T / HTTP/1.1")},
    {"lower-case method", line("get / HTTP/1.1"), Code::unsupported},
    {"mixed-case method", line("Get / HTTP/1.1"), Code::unsupported},
    {"absurdly long method", line(std::string(33, 'A') + " / HTTP/1.1"), Code::unsupported},
    {"CONNECT", line("CONNECT a:1 HTTP/1.1"), Code::unsupported},
    {"TRACE", line("TRACE / HTTP/1.1"), Code::unsupported},
    // The target.
    {"asterisk", line("OPTIONS * HTTP/1.1")},
    {"absolute form", line("GET http://a/ HTTP/1.1")},
    {"absolute form, other scheme", line("GET file:///etc/passwd HTTP/1.1")},
    {"authority form", line("GET a:80 HTTP/1.1")},
    {"no leading slash", line("GET a HTTP/1.1")},
    {"only a query", line("GET ?a=b HTTP/1.1")},
    {"backslash first", line("GET \\a HTTP/1.1")},
    {"fragment", line("GET /a#b HTTP/1.1")},
    {"fragment in the query", line("GET /a?b#c HTTP/1.1")},
    {"NUL in the target", line(std::string("GET /\0 HTTP/1.1", 15))},
    {"tab in the target", line("GET /a\tb HTTP/1.1")},
    {"escape in the target", line("GET /\x1b HTTP/1.1")},
    {"DEL in the target", line("GET /\x7f HTTP/1.1")},
    {"UTF-8 in the target", line("GET /\xc3\xa9 HTTP/1.1")},
    {"Latin-1 in the target", line("GET /\xe9 HTTP/1.1")},
    {"CR in the target", line("GET /\r HTTP/1.1")},
    {"LF in the target", line("GET /\n HTTP/1.1")},
    {"target too long", line("GET /" + std::string(kMaxTargetBytes, 'a') + " HTTP/1.1"), Code::too_large},
    // Lines.
    {"bare LF everywhere", "GET / HTTP/1.1\nHost: a\n\n"},
    {"bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
    {"bare LF after a field", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
    {"bare LF as the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
    {"bare CR in a value", get("X: a\rb\r\n")},
    {"bare CR that hides a field", get("X: a\rTransfer-Encoding: chunked\r\n")},
    {"CR CR LF", get("X: a\r\r\n")},
    {"LF CR", "GET / HTTP/1.1\n\rHost: a\n\r\n\r"},
    {"bytes behind the head", get("") + "GET"},
    // Fields.
    {"folded with a blank", get("X: a\r\n b\r\n")},
    {"folded with a tab", get("X: a\r\n\tb\r\n")},
    {"folded first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
    {"folded Transfer-Encoding", post("Transfer-Encoding:\r\n chunked\r\n")},
    {"blank before the colon", get("X : a\r\n")},
    {"tab before the colon", get("X\t: a\r\n")},
    {"blank before the colon of Content-Length", post("Content-Length : 5\r\n")},
    {"no colon", get("X\r\n")},
    {"empty name", get(": a\r\n")},
    {"only a colon", get(":\r\n")},
    {"line of blanks", get("   \r\n")},
    {"name with a blank", get("X Y: a\r\n")},
    {"name in quotes", get("\"X\": a\r\n")},
    {"name with a slash", get("X/Y: a\r\n")},
    {"name with brackets", get("X[]: a\r\n")},
    {"name with an at sign", get("X@: a\r\n")},
    {"name not ASCII", get("X\xc3\xa9: a\r\n")},
    {"name with a NUL", get(std::string("X\0: a\r\n", 7))},
    {"name with a control", get("X\x01: a\r\n")},
    {"value with a NUL", get(std::string("X: a\0b\r\n", 8))},
    {"value with BEL", get("X: a\x07\r\n")},
    {"value with escape", get("X: \x1b[2J\r\n")},
    {"value with vertical tab", get("X: a\vb\r\n")},
    {"value with form feed", get("X: a\fb\r\n")},
    {"value with DEL", get("X: a\x7f\r\n")},
    {"too many fields", get(many_fields(kMaxHeaderFields)), Code::too_large},
    {"too many bytes", get("X: " + std::string(kMaxHeadBytes, 'a') + "\r\n"), Code::too_large},
    // Host.
    {"no Host", "GET / HTTP/1.1\r\n\r\n"},
    {"no Host but others", "GET / HTTP/1.1\r\nHost2: a\r\n\r\n"},
    {"two Hosts", get("Host: b\r\n")},
    {"two equal Hosts", get("Host: a\r\n")},
    {"two Hosts in other case", get("hOST: b\r\n")},
    {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"},
    {"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
    {"blank Host", "GET / HTTP/1.1\r\nHost:  \t \r\n\r\n"},
    {"Host list", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"},
    {"Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
    {"Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"},
    {"Host with a scheme", "GET / HTTP/1.1\r\nHost: http://a\r\n\r\n"},
    {"Host with a query", "GET / HTTP/1.1\r\nHost: a?b\r\n\r\n"},
    {"Host with a bad port", "GET / HTTP/1.1\r\nHost: a:b\r\n\r\n"},
    {"Host with two ports", "GET / HTTP/1.1\r\nHost: a:1:2\r\n\r\n"},
    {"Host with a long port", "GET / HTTP/1.1\r\nHost: a:123456\r\n\r\n"},
    {"Host that is only a port", "GET / HTTP/1.1\r\nHost: :80\r\n\r\n"},
    {"Host not ASCII", "GET / HTTP/1.1\r\nHost: \xc3\xa9\r\n\r\n"},
    {"Host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
    {"Host with an open bracket", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"},
    {"Host with empty brackets", "GET / HTTP/1.1\r\nHost: []\r\n\r\n"},
    {"Host with bytes behind the bracket", "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"},
    // Framing.
    {"both framings", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")},
    {"both framings, the other way round", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n")},
    {"both framings with length 0", post("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n")},
    {"Content-Length twice", post("Content-Length: 5\r\nContent-Length: 6\r\n")},
    {"Content-Length twice and equal", post("Content-Length: 5\r\nContent-Length: 5\r\n")},
    {"Content-Length list", post("Content-Length: 5, 5\r\n")},
    {"Content-Length list without blank", post("Content-Length: 5,5\r\n")},
    {"Content-Length empty", post("Content-Length:\r\n")},
    {"Content-Length with plus", post("Content-Length: +5\r\n")},
    {"Content-Length negative", post("Content-Length: -1\r\n")},
    {"Content-Length hexadecimal", post("Content-Length: 0x5\r\n")},
    {"Content-Length octal-looking", post("Content-Length: 010\r\n")},
    {"Content-Length with fraction", post("Content-Length: 5.0\r\n")},
    {"Content-Length with exponent", post("Content-Length: 1e3\r\n")},
    {"Content-Length in words", post("Content-Length: five\r\n")},
    {"Content-Length with a blank inside", post("Content-Length: 1 0\r\n")},
    {"Content-Length with an underscore", post("Content-Length: 1_0\r\n")},
    {"Content-Length too large", post("Content-Length: 18446744073709551616\r\n")},
    {"Content-Length of 19 digits", post("Content-Length: 9999999999999999999\r\n")},
    {"Transfer-Encoding twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")},
    {"Transfer-Encoding twice, one odd", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: cow\r\n")},
    {"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"Transfer-Encoding xchunked", post("Transfer-Encoding: xchunked\r\n"), Code::unsupported},
    {"Transfer-Encoding chunkedx", post("Transfer-Encoding: chunkedx\r\n"), Code::unsupported},
    {"Transfer-Encoding in capitals", post("Transfer-Encoding: CHUNKED\r\n"), Code::unsupported},
    {"Transfer-Encoding identity", post("Transfer-Encoding: identity\r\n"), Code::unsupported},
    {"Transfer-Encoding gzip, chunked", post("Transfer-Encoding: gzip, chunked\r\n"), Code::unsupported},
    {"Transfer-Encoding chunked, chunked", post("Transfer-Encoding: chunked, chunked\r\n"),
     Code::unsupported},
    {"Transfer-Encoding chunked, identity", post("Transfer-Encoding: chunked, identity\r\n"),
     Code::unsupported},
    {"Transfer-Encoding with parameter", post("Transfer-Encoding: chunked;a=b\r\n"), Code::unsupported},
    {"Transfer-Encoding with comma", post("Transfer-Encoding: ,chunked\r\n"), Code::unsupported},
    {"Transfer-Encoding empty", post("Transfer-Encoding:\r\n"), Code::unsupported},
    {"Transfer-Encoding quoted", post("Transfer-Encoding: \"chunked\"\r\n"), Code::unsupported},
};

const std::vector<Case> kAccepted = {
    {"plain", get("")},
    {"HTTP/1.0 without Host", "GET / HTTP/1.0\r\n\r\n"},
    {"HTTP/1.0 with Host", "GET / HTTP/1.0\r\nHost: a\r\n\r\n"},
    {"length", post("Content-Length: 5\r\n")},
    {"length 0 in a GET", get("Content-Length: 0\r\n")},
    {"large length", post("Content-Length: 999999999999999999\r\n")},
    {"chunked", post("Transfer-Encoding: chunked\r\n")},
    {"name in any case", post("tRANSFER-eNCODING: chunked\r\n")},
    {"no blank behind the colon", "GET / HTTP/1.1\r\nHost:a\r\n\r\n"},
    {"blanks and tabs around the value", get("X: \t a b\t \r\n")},
    {"empty value", get("X:\r\n")},
    {"colons in the value", get("X: a:b: c\r\n")},
    {"UTF-8 in a value", get("X: \xc3\xa9\r\n")},
    {"every token character in a name", get("!#$%&'*+-.^_`|~09azAZ: v\r\n")},
    {"repeated ordinary field", get("X: 1\r\nX: 2\r\nCookie: a\r\nCookie: b\r\n")},
    {"as many fields as allowed", get(many_fields(kMaxHeaderFields - 1))},
    {"Host with port", "GET / HTTP/1.1\r\nHost: example.test:65535\r\n\r\n"},
    {"Host IPv6", "GET / HTTP/1.1\r\nHost: [fe80::1]:80\r\n\r\n"},
    {"Host with an underscore", "GET / HTTP/1.1\r\nHost: my_service\r\n\r\n"},
    {"query and escapes", line("GET /a%20b/%2e%2e?x=%zz&y={}|\\^`\"<> HTTP/1.1")},
    {"double slashes", line("GET //a//b HTTP/1.1")},
    {"method from WebDAV", line("VERSION-CONTROL / HTTP/1.1")},
    {"OPTIONS with a path", line("OPTIONS / HTTP/1.1")},
    {"longest target", line("GET /" + std::string(kMaxTargetBytes - 1, 'a') + " HTTP/1.1")},
    {"upgrade", get("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n")},
};

TEST(HeadCheck, Rejects) {
  for (const Case& c : kRejected) {
    auto result = check_request_head(c.head);
    EXPECT_FALSE(result.has_value()) << c.why;
    if (result) continue;
    EXPECT_EQ(result.error().code, c.code) << c.why << ": " << result.error().message;
    EXPECT_FALSE(result.error().message.empty()) << c.why;
  }
}

TEST(HeadCheck, Accepts) {
  for (const Case& c : kAccepted) {
    auto result = check_request_head(c.head);
    EXPECT_TRUE(result.has_value()) << c.why << ": " << (result ? "" : result.error().message);
  }
}

TEST(HeadCheck, RejectsMoreThanItAccepts) { EXPECT_GT(kRejected.size(), 3 * kAccepted.size()); }

// Every accepted head cut anywhere, or with any one byte replaced by a dangerous one, must not crash, and a
// cut one must not pass.
TEST(HeadCheck, SurvivesMutations) {
  for (const Case& c : kAccepted) {
    if (c.head.size() > 1000) continue;
    for (size_t i = 0; i < c.head.size(); ++i)
      EXPECT_FALSE(check_request_head(c.head.substr(0, i)).has_value()) << c.why;
    for (size_t i = 0; i < c.head.size(); ++i) {
      for (char bad : {'\0', '\r', '\n', '\x7f', ' ', ':', '\xff'}) {
        std::string mutated = c.head;
        mutated[i] = bad;
        auto result = check_request_head(mutated);
        if (bad == '\0' || bad == '\x7f') EXPECT_FALSE(result.has_value()) << c.why << " at " << i;
      }
    }
  }
}

// A second opinion: what passes here means the same to an independent, widely used parser.
TEST(HeadCheck, AcceptedHeadsMeanTheSameToBeast) {
  for (const Case& c : kAccepted) {
    beast::http::request_parser<beast::http::empty_body> parser;
    parser.body_limit(boost::none);
    parser.header_limit(1 << 20);
    beast::error_code error;
    parser.put(boost::asio::buffer(c.head), error);
    // "/x" in a target is fine for both; Beast's only complaint may be that a body follows.
    ASSERT_TRUE(!error || error == beast::http::error::need_more ||
                error == beast::http::error::unexpected_body)
        << c.why << ": " << error.message();
    RequestHead head;
    Framing framing;
    ASSERT_FALSE(parse_request_head(c.head, head, framing)) << c.why;
    const auto& theirs = parser.get();
    EXPECT_EQ(head.method, std::string(theirs.method_string())) << c.why;
    EXPECT_EQ(head.target, std::string(theirs.target())) << c.why;
    EXPECT_EQ(head.http_1_1, theirs.version() == 11) << c.why;
    EXPECT_EQ(framing.chunked, parser.chunked()) << c.why;
    EXPECT_EQ(framing.length.has_value(), parser.content_length().has_value()) << c.why;
    if (framing.length) EXPECT_EQ(*framing.length, *parser.content_length()) << c.why;
    EXPECT_EQ(framing.upgrade, parser.upgrade()) << c.why;
    ASSERT_EQ(head.headers.size(), static_cast<size_t>(std::distance(theirs.begin(), theirs.end()))) << c.why;
    for (const auto& [name, value] : head.headers) {
      bool found = false;
      auto [from, to] = theirs.equal_range(name);
      for (auto at = from; at != to; ++at) found = found || value == std::string_view(at->value());
      EXPECT_TRUE(found) << c.why << ": " << name;
    }
  }
}

TEST(FindHeadEnd, ByteByByte) {
  std::string bytes = get("X: y\r\n") + "rest";
  size_t scanned = 0;
  for (size_t i = 0; i + 4 < bytes.size(); ++i) {
    EXPECT_EQ(find_head_end(std::string_view(bytes).substr(0, i), scanned).state, HeadScan::State::incomplete)
        << i;
  }
  auto scan = find_head_end(bytes, scanned);
  EXPECT_EQ(scan.state, HeadScan::State::complete);
  EXPECT_EQ(scan.size, bytes.size() - 4);
}

TEST(FindHeadEnd, RefusesWhatWouldNeverEnd) {
  for (std::string_view bytes :
       {"GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nHost: a\n", "\r\n", "\n", "\x16\x03\x01", " GET", "\x80"}) {
    size_t scanned = 0;
    EXPECT_EQ(find_head_end(bytes, scanned).state, HeadScan::State::malformed) << bytes;
  }
}

TEST(ResponseHead, AcceptsAndRejects) {
  struct {
    std::string head;
    bool good;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\n\r\n", true},
      {"HTTP/1.1 200\r\n\r\n", true},
      {"HTTP/1.1 200 \r\n\r\n", true},
      {"HTTP/1.0 404 Not Found here\r\nA: b\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true},
      {"HTTP/1.1 20 OK\r\n\r\n", false},
      {"HTTP/1.1 2000 OK\r\n\r\n", false},
      {"HTTP/1.1 099 OK\r\n\r\n", false},
      {"HTTP/1.1 2x0 OK\r\n\r\n", false},
      {"HTTP/1.1  200 OK\r\n\r\n", false},
      {"HTTP/1.1\r\n\r\n", false},
      {"HTTP/2.0 200 OK\r\n\r\n", false},
      {"HTTP/1.1 200 OK\x01\r\n\r\n", false},
      {"HTTP/1.1 200 OK\nA: b\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", false},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false},
  };
  for (const auto& c : cases) {
    ResponseHead head;
    Framing framing;
    EXPECT_EQ(!parse_response_head(c.head, head, framing), c.good) << c.head;
  }
}

}  // namespace
}  // namespace osb::http
