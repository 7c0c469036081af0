#include "egress/dns_message.h"

#include <gtest/gtest.h>

namespace osb::egress {
namespace {

using namespace std::string_literals;

std::string u16(int value) { return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)}; }
std::string header(int id, int flags, int questions, int answers, int authority = 0, int more = 0) {
  return u16(id) + u16(flags) + u16(questions) + u16(answers) + u16(authority) + u16(more);
}
const std::string kName = "\x03www\x04test\0"s;
std::string question(int type = kDnsA, int klass = 1) { return kName + u16(type) + u16(klass); }
std::string record(const std::string& owner, int type, const std::string& data, int ttl = 300) {
  return owner + u16(type) + u16(1) + u16(0) + u16(ttl) + u16(static_cast<int>(data.size())) + data;
}
const std::string kPointer = "\xc0\x0c"s;

DnsQuestion asked(int type = kDnsA) {
  return parse_question(header(7, 0x0100, 1, 0) + question(type))->question;
}

TEST(DnsQuestion, IsTakenApart) {
  auto parsed = parse_question(header(7, 0x0110, 1, 0) + question(kDnsAaaa));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->refusal, 0);
  EXPECT_EQ(parsed->question.name, "www.test");
  EXPECT_EQ(parsed->question.type, kDnsAaaa);
  EXPECT_TRUE(parsed->question.checking_disabled);
  EXPECT_EQ(parsed->question.most_bytes, 512);
  std::string opt = "\0"s + u16(kDnsOpt) + u16(4096) + u16(0) + u16(0x8000) + u16(0);
  parsed = parse_question(header(7, 0x0100, 1, 0, 0, 1) + question() + opt);
  EXPECT_EQ(parsed->refusal, 0);
  EXPECT_EQ(parsed->question.most_bytes, 4096);
  EXPECT_TRUE(parsed->question.wants_dnssec);
}

TEST(DnsQuestion, IsAskedAnewWithoutWhatNobodyUnderstands) {
  std::string opt = "\0"s + u16(kDnsOpt) + u16(4096) + u16(0) + u16(0) + u16(8) + "\x00\x0a\x00\x04leak"s;
  auto parsed = parse_question(header(7, 0x0100, 1, 0, 0, 1) + question() + opt);
  ASSERT_TRUE(parsed);
  std::string sent = encode_question(parsed->question, 0x1234);
  EXPECT_EQ(sent.substr(0, 2), "\x12\x34");
  EXPECT_EQ(sent.find("leak"), sent.npos);
}

TEST(DnsQuestion, RefusesWhatIsNone) {
  const std::string kOpt = "\0"s + u16(kDnsOpt) + u16(512) + u16(0) + u16(0) + u16(0);
  const std::string kIgnored[] = {"", "x", header(7, 0x8180, 1, 0) + question()};
  for (const std::string& bytes : kIgnored) EXPECT_FALSE(parse_question(bytes));
  const std::pair<std::string, int> kRefused[] = {
      {header(7, 0x0100, 0, 0), kDnsFormatError},
      {header(7, 0x0100, 2, 0) + question() + question(), kDnsFormatError},
      {header(7, 0x0100, 1, 1) + question() + record(kPointer, kDnsA, "abcd"), kDnsFormatError},
      {header(7, 0x0100, 1, 0) + kName, kDnsFormatError},
      {header(7, 0x0100, 1, 0) + kPointer + u16(1) + u16(1), kDnsFormatError},
      {header(7, 0x0100, 1, 0) + "\x40" + std::string(64, 'a') + "\0"s + u16(1) + u16(1), kDnsFormatError},
      {header(7, 0x0100, 1, 0) + question(kDnsA, 3), kDnsFormatError},
      {header(7, 0x0100, 1, 0) + question() + "x", kDnsFormatError},
      {header(7, 0x0100, 1, 0, 0, 2) + question() + kOpt + kOpt, kDnsFormatError},
      {header(7, 0x0100, 1, 0, 0, 1) + question() + record("\0"s, kDnsA, "abcd"), kDnsFormatError},
      {header(7, 0x2800, 1, 0) + question(), kDnsNotImplemented},
  };
  for (const auto& [bytes, code] : kRefused) {
    auto parsed = parse_question(bytes);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->refusal, code);
    EXPECT_GE(encode_answer(parsed->question, parsed->refusal).size(), 12u);
  }
}

TEST(DnsQuestion, OddBytesInANameAreNoName) {
  auto parsed = parse_question(header(7, 0x0100, 1, 0) +
                               "\x07"
                               "a.b\0c d\x04test\0"s +
                               u16(1) + u16(1));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->question.name, "a?b?c?d.test");
  EXPECT_FALSE(sandbox::normal_name(parsed->question.name));
}

TEST(DnsAnswer, RecordsOfTheQuestionAndItsAliases) {
  std::string alias =
                  "\x05"
                  "alias\x04test\0"s,
              other = "\x05other\x04test\0"s;
  std::string bytes = header(9, 0x8180, 1, 4) + question() + record(kPointer, kDnsCname, alias) +
                      record(alias, kDnsA, "\1\2\3\4") + record(other, kDnsA, "\5\6\7\x08") +
                      record("\x03WWW\x04Test\0"s, kDnsA, "\1\2\3\5");
  auto answer = parse_answer(bytes, asked(), 9);
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->answers.size(), 3u);
  EXPECT_EQ(to_string(*answer->answers[1].address()), "1.2.3.4");
  EXPECT_EQ(answer->answers[1].owner, "alias.test");
  std::string out = encode_answer(asked(), *answer, 512);
  EXPECT_EQ(out.substr(0, 2), u16(7));
  EXPECT_EQ(out.find("other"), out.npos);
  // What we write is what we read.
  auto again = parse_answer(out, asked(), 7);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->answers.size(), 3u);
}

TEST(DnsAnswer, IsToTheQuestionOrNone) {
  std::string right = header(9, 0x8180, 1, 1) + question() + record(kPointer, kDnsA, "\1\2\3\4");
  ASSERT_TRUE(parse_answer(right, asked(), 9));
  EXPECT_FALSE(parse_answer(right, asked(), 10));
  EXPECT_FALSE(parse_answer(right, asked(kDnsAaaa), 9));
  const std::string kWrong[] = {
      "",
      header(9, 0x0100, 1, 0) + question(),                                           // no answer
      header(9, 0x8180, 0, 0),                                                        // to nothing
      header(9, 0x8180, 1, 0) + "\x03xxx\x04test\0"s + u16(1) + u16(1),               // to another
      header(9, 0x8180, 1, 2) + question() + record(kPointer, kDnsA, "\1\2\3\4"),     // fewer than it says
      header(9, 0x8180, 1, 1) + question() + record(kPointer, kDnsA, "\1\2\3"),       // a short address
      header(9, 0x8180, 1, 1) + question() + record("\xc0\x1a"s, kDnsA, "\1\2\3\4"),  // a pointer to itself
      header(9, 0x8180, 1, 1) + question() + record("\xff\xff"s, kDnsA, "\1\2\3\4"),  // and to nowhere
      header(9, 0x8180, 1, 1) + question() + record(kPointer, kDnsCname, "\xc0\x0cx"s),  // more than a name
      header(9, 0x8180, 1, 1) + question() +
          record(kPointer, kDnsHttps, "\0\1\0\0\1\0\x09x"s),  // short parameters
  };
  for (const std::string& bytes : kWrong) EXPECT_FALSE(parse_answer(bytes, asked(), 9));
}

TEST(DnsAnswer, LosesEch) {
  std::string data =
      "\0\1\0"s + u16(1) + u16(3) + "\x02h2" + u16(5) + u16(6) + "secret" + u16(6) + u16(4) + "keep";
  auto answer = parse_answer(
      header(9, 0x8180, 1, 1) + question(kDnsHttps) + record(kPointer, kDnsHttps, data), asked(kDnsHttps), 9);
  ASSERT_TRUE(answer);
  std::string out = encode_answer(asked(kDnsHttps), *answer, 512);
  EXPECT_EQ(out.find("secret"), out.npos);
  EXPECT_NE(out.find("keep"), out.npos);
  EXPECT_NE(out.find("h2"), out.npos);
}

TEST(DnsAnswer, WhatDoesNotFitIsCutWithTheMark) {
  std::string records;
  for (int i = 0; i < 100; ++i) records += record(kPointer, kDnsA, "\1\2\3\4");
  auto answer = parse_answer(header(9, 0x8180, 1, 100) + question() + records, asked(), 9);
  ASSERT_TRUE(answer);
  std::string cut = encode_answer(asked(), *answer, 512);
  EXPECT_LT(cut.size(), 512u);
  EXPECT_TRUE(cut[2] & 2);
  EXPECT_GT(encode_answer(asked(), *answer, 65535).size(), 1000u);
}

TEST(DnsAnswer, SaysHowLongANoCounts) {
  std::string soa = kPointer + kPointer + std::string(20, 'x');
  auto answer =
      parse_answer(header(9, 0x8183, 1, 0, 1) + question() + record(kPointer, kDnsSoa, soa), asked(), 9);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code, kDnsNoName);
  ASSERT_EQ(answer->authority.size(), 1u);
  EXPECT_EQ(answer->authority[0].data.size(), 2 * kName.size() + 20);
}

}  // namespace
}  // namespace osb::egress
