#include "sandbox/principal.h"

#include <gtest/gtest.h>

namespace osb::sandbox {
namespace {

TEST(Scope, CoversWhatItsPrincipalOwns) {
  Scope one = Scope::of(Principal::owner_named("one"));
  EXPECT_TRUE(one.covers("one", "a"));
  EXPECT_FALSE(one.covers("two", "a"));
  EXPECT_FALSE(one.covers("", "a"));
  EXPECT_FALSE(one.covers("one ", "a"));
}

TEST(Scope, ATokenOpensOneSandbox) {
  Scope holder = Scope::of(Principal::holder_of_endpoint("a"));
  EXPECT_TRUE(holder.covers("one", "a"));
  EXPECT_FALSE(holder.covers("one", "b"));
  EXPECT_FALSE(holder.covers("", "b"));
}

TEST(Scope, NobodySeesNothing) {
  Scope nobody = Scope::of(Principal::nobody());
  EXPECT_FALSE(nobody.covers("one", "a"));
  EXPECT_FALSE(nobody.covers("", "a")) << "also not what has no owner";
  EXPECT_FALSE(nobody.covers("", ""));
}

TEST(Scope, TheServiceSeesEverything) {
  EXPECT_TRUE(Scope::everybody().covers("one", "a"));
  EXPECT_TRUE(Scope::everybody().covers("", "a"));
  EXPECT_FALSE(Scope::everybody().owner().has_value());
}

}  // namespace
}  // namespace osb::sandbox
