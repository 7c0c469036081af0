#include "egress/client_hello.h"

#include <gtest/gtest.h>

namespace osb::egress {
namespace {

using Kind = Spoken::Kind;
using namespace std::string_literals;

std::string sized(size_t length_size, const std::string& bytes) {
  std::string out;
  for (size_t i = length_size; i-- > 0;) out.push_back(static_cast<char>(bytes.size() >> (8 * i)));
  return out + bytes;
}
std::string extension(int type, const std::string& data) {
  return std::string{static_cast<char>(type >> 8), static_cast<char>(type)} + sized(2, data);
}
std::string server_name(const std::string& host) { return extension(0, sized(2, "\0"s + sized(2, host))); }
std::string hello(const std::string& extensions) {
  std::string body = "\3\3" + std::string(32, 'r') + sized(1, "") + sized(2, "\x13\x01") + sized(1, "\0"s);
  if (!extensions.empty()) body += sized(2, extensions);
  return "\1" + sized(3, body);
}
std::string records(const std::string& message, size_t each = 16384) {
  std::string out;
  for (size_t at = 0; at < message.size(); at += each) out += "\x16\3\1" + sized(2, message.substr(at, each));
  return out;
}

TEST(ClientHello, NamesItsHost) {
  std::string bytes = records(
      hello(extension(43, "\2\3\4") + server_name("Example.com") + extension(21, std::string(500, '\0'))));
  Spoken spoken = read_spoken(bytes);
  EXPECT_EQ(spoken.kind, Kind::tls);
  EXPECT_EQ(spoken.host, "Example.com");
  // Every part of it is not enough, and never wrong.
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_EQ(read_spoken(bytes.substr(0, n)).kind, Kind::more) << n;
  // In many records, as some clients send it to get past somebody.
  EXPECT_EQ(read_spoken(records(hello(server_name("example.com")), 1)).host, "example.com");
}

TEST(ClientHello, MayNameNone) {
  EXPECT_EQ(read_spoken(records(hello(""))).kind, Kind::tls);
  EXPECT_EQ(read_spoken(records(hello(extension(43, "\2\3\4")))).host, "");
}

TEST(ClientHello, TricksAreRefused) {
  const std::string kTricks[] = {
      hello(server_name("a.test") + server_name("b.test")),
      hello(extension(0, sized(2, "\0"s + sized(2, "a.test") + "\0"s + sized(2, "b.test")))),
      hello(server_name("a.test\0.b"s)),
      hello(server_name("a b")),
      hello(server_name("")),
      hello(server_name("\xc3\xa4.test")),
      hello(server_name(std::string(256, 'a'))),
      hello(extension(0, "\0"s)),
      hello("\0"s),
      "\1" + sized(3, "\3\3"),
  };
  for (const std::string& trick : kTricks) EXPECT_EQ(read_spoken(records(trick)).kind, Kind::refused);
}

TEST(ClientHello, OtherThingsAreOther) {
  for (const std::string& bytes : {"\x16\2\1\0\5"s, "\x16\3\1\0\0"s, "\x16\3\1\0\1\2"s, "\x16\3\1\xff\xff"s})
    EXPECT_EQ(read_spoken(bytes).kind, Kind::other);
  EXPECT_EQ(read_client_hello("\x80\x2e\x01"s).kind, Kind::other);
}

TEST(HttpHead, NamesItsHost) {
  const std::pair<std::string, std::string> kHeads[] = {
      {"GET / HTTP/1.1\r\nHost: Example.com\r\n\r\n", "Example.com"},
      {"GET / HTTP/1.1\r\nA: b\r\nhost:\texample.com:8080 \r\n\r\nbody", "example.com"},
      {"GET http://example.com/x HTTP/1.1\r\nHost: example.com\r\n\r\n", "example.com"},
      {"GET http://example.com:80?x HTTP/1.1\r\n\r\n", "example.com"},
      {"CONNECT example.com:443 HTTP/1.1\r\n\r\n", "example.com"},
      {"GET / HTTP/1.1\nHost: example.com\n\n", "example.com"},
      {"GET / HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n\r\n", "2001:db8::1"},
      {"GET / HTTP/1.0\r\n\r\n", ""},
      {"GET / HTTP/1.1\r\nHost:\r\n\r\n", ""},
  };
  for (const auto& [head, host] : kHeads) {
    Spoken spoken = read_spoken(head);
    EXPECT_EQ(spoken.kind, Kind::http) << head;
    EXPECT_EQ(spoken.host, host) << head;
  }
}

TEST(HttpHead, WaitsForItsEnd) {
  std::string head = "POST /path HTTP/1.1\r\nHost: example.com\r\n\r\n";
  for (size_t n = 0; n < head.size(); ++n) EXPECT_EQ(read_spoken(head.substr(0, n)).kind, Kind::more) << n;
}

TEST(HttpHead, TricksAreRefused) {
  for (const std::string& head : {
           "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: a.test\r\nhost: a.test\r\n\r\n"s,
           "GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost : b.test\r\n\r\n"s,
           "GET / HTTP/1.1\r\n Host: b.test\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: a.test@b.test\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: a.test:b.test\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: a test\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: a.test\0b\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: [\xcf]:80\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n"s,
           "GET / HTTP/1.1\r\nHost: []\r\n\r\n"s,
           "GET / HTTP/1.1\r\nno colon\r\n\r\n"s,
           "GET http://a.test@b.test/ HTTP/1.1\r\n\r\n"s,
           "CONNECT a.test:x HTTP/1.1\r\n\r\n"s,
           "GET / HTTP/1.1\r\nA: "s + std::string(40'000, 'x'),
       }) {
    EXPECT_EQ(read_spoken(head).kind, Kind::refused) << head.substr(0, 60);
  }
}

TEST(HttpHead, OtherProtocolsAreOther) {
  for (const std::string& bytes : {"SSH-2.0-OpenSSH_9.2\r\n"s, "HELO example.com\r\n"s, "\0\0\0"s, " GET /"s,
                                   "USER a b c :d\r\n"s, std::string(100, 'A'), "{\"json\":1}\n"s}) {
    EXPECT_EQ(read_spoken(bytes).kind, Kind::other) << bytes;
  }
}

}  // namespace
}  // namespace osb::egress
