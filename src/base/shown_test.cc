#include "base/shown.h"

#include <gtest/gtest.h>

namespace osb {
namespace {

TEST(Shown, IsShortAndOneLine) {
  EXPECT_EQ(shown("plain text"), "plain text");
  EXPECT_EQ(shown("a\nb\x1b[31m\x7f"), "a?b?[31m?");
  EXPECT_EQ(shown(std::string(1000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace osb
