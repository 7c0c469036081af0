#include "base/ids.h"

#include <gmock/gmock.h>

#include <set>

#include "base/clock.h"

namespace osb {
namespace {

TEST(Ids, HaveTheirForms) {
  for (int i = 0; i < 1000; ++i) {
    std::string v7 = new_uuid7(), v4 = new_uuid4(), hex = new_hex_id();
    EXPECT_TRUE(is_uuid(v7)) << v7;
    EXPECT_TRUE(is_uuid(v4)) << v4;
    EXPECT_EQ(v7[14], '7');
    EXPECT_EQ(v4[14], '4');
    EXPECT_NE(std::string_view("89ab").find(v7[19]), std::string_view::npos) << v7;
    EXPECT_NE(std::string_view("89ab").find(v4[19]), std::string_view::npos) << v4;
    EXPECT_EQ(hex.size(), 32u);
    EXPECT_EQ(hex.find_first_not_of("0123456789abcdef"), hex.npos) << hex;
    EXPECT_EQ(hex[12], '4');
  }
}

TEST(Ids, AreAllDifferent) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(seen.insert(new_uuid7()).second);
    EXPECT_TRUE(seen.insert(new_uuid4()).second);
    EXPECT_TRUE(seen.insert(new_hex_id()).second);
  }
}

TEST(Ids, SandboxIdsCarryTheTime) {
  int64_t before = epoch_ms();
  std::string id = new_uuid7();
  int64_t after = epoch_ms();
  int64_t ms = std::stoll(id.substr(0, 8) + id.substr(9, 4), nullptr, 16);
  EXPECT_LE(before, ms);
  EXPECT_LE(ms, after);
}

TEST(IsUuid, TakesOnlyTheCanonicalForm) {
  EXPECT_TRUE(is_uuid("0198c2a4-7b1e-7cc3-9f00-0123456789ab"));
  EXPECT_TRUE(is_uuid("00000000-0000-0000-0000-000000000000"));
  for (std::string_view text : {
           "",
           "0198c2a47b1e7cc39f000123456789ab",
           "0198C2A4-7B1E-7CC3-9F00-0123456789AB",
           "{0198c2a4-7b1e-7cc3-9f00-0123456789ab}",
           "0198c2a4-7b1e-7cc3-9f00-0123456789a",
           "0198c2a4-7b1e-7cc3-9f00-0123456789abc",
           " 198c2a4-7b1e-7cc3-9f00-0123456789ab",
           "0198c2a4-7b1e-7cc3-9f00-0123456789a\n",
           "0198c2a4-7b1e-7cc3-9f00-0123456789ag",
           "0198c2a4-7b1e-7cc3-9f000-123456789ab",
           "0198c2a4_7b1e_7cc3_9f00_0123456789ab",
           "../../..-/../-..//-../.-./../../../.",
       }) {
    EXPECT_FALSE(is_uuid(text)) << text;
  }
  EXPECT_FALSE(is_uuid({"0198c2a4-7b1e-7cc3-9f00-0123456789a\0", 36}));
}

TEST(Ids, WhatAnotherServerMayHaveCalledASandbox) {
  for (const char* fine : {"a", "0198c2a4-7b1e-7cc3-9f00-0123456789ab", "my-sandbox_1.b"})
    EXPECT_TRUE(is_sandbox_id(fine)) << fine;
  for (const char* wrong : {"", ".", "..", "-a", "_a", "a/b", "a b", "a%41", "a?b", "a#b", "\xc3\xa4", "a\n"})
    EXPECT_FALSE(is_sandbox_id(wrong)) << wrong;
  EXPECT_TRUE(is_sandbox_id(std::string(128, 'a')));
  EXPECT_FALSE(is_sandbox_id(std::string(129, 'a')));
  EXPECT_FALSE(is_sandbox_id({"a\0", 2}));
}

}  // namespace
}  // namespace osb
