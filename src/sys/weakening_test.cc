#include "sys/weakening.h"

#include <gtest/gtest.h>

namespace osb::sys {
namespace {

TEST(Weakening, OnlyWhatWasNamedIsTolerated) {
  constexpr Weakening kNone{"nothing", "a test"};
  EXPECT_EQ(tolerate(0, {ENOSYS}, kNone), 0);
  EXPECT_EQ(tolerate(-ENOSYS, {ENOSYS, EOPNOTSUPP}, kNone), 0);
  EXPECT_EQ(tolerate(-EPERM, {ENOSYS, EOPNOTSUPP}, kNone), -EPERM);
  EXPECT_EQ(tolerate(7, {ENOSYS}, kNone), 7);
  EXPECT_TRUE(tolerate(Result<void>{}, {}, kNone));
  EXPECT_TRUE(tolerate(Result<void>(fail(Code::not_found, "x")), {Code::not_found}, kNone));
  EXPECT_FALSE(tolerate(Result<void>(fail(Code::permission_denied, "x")), {Code::not_found}, kNone));
}

}  // namespace
}  // namespace osb::sys
