#include "base/fnv.h"

#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/machine.h"

namespace osb {
namespace {

TEST(Fnv1a, HasTheValuesOfItsAuthors) {
  EXPECT_EQ(Fnv1a().value(), 0xcbf29ce484222325u);
  Fnv1a a, foobar;
  a.add("a");
  foobar.add("foo");
  foobar.add("bar");
  EXPECT_EQ(a.value(), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(foobar.value(), 0x85944171f73967e8u);
}

TEST(Hex, IsLowerCase) {
  EXPECT_TRUE(is_hex("0123456789abcdef"));
  EXPECT_TRUE(is_hex(""));
  for (const char* text : {"g", "A", "0x", " 1", "1\n"}) EXPECT_FALSE(is_hex(text)) << text;
  EXPECT_TRUE(is_hex_digest(std::string(64, 'a')));
  EXPECT_FALSE(is_hex_digest(std::string(63, 'a')));
  EXPECT_FALSE(is_hex_digest(std::string(65, 'a')));
  EXPECT_FALSE(is_hex_digest(std::string(63, 'a') + "\0"));
}

TEST(Machine, HasAName) { EXPECT_FALSE(host_architecture().empty()); }

}  // namespace
}  // namespace osb
