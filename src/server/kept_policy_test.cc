#include "server/kept_policy.h"

#include <gtest/gtest.h>

namespace osb::server {
namespace {

TEST(KeptPolicy, ComesBackAsItWas) {
  runtime::NetworkPolicy given{.allow_the_rest = false,
                               .egress = {{true, "*.example"}, {false, "10.0.0.0/8"}}};
  auto back = policy_from(to_text(given));
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->allow_the_rest);
  ASSERT_EQ(back->egress.size(), 2u);
  EXPECT_TRUE(back->egress[0].allow);
  EXPECT_EQ(back->egress[0].target, "*.example");
  EXPECT_FALSE(back->egress[1].allow);
  EXPECT_EQ(to_text(std::nullopt), "");
}

TEST(KeptPolicy, AMistakeOpensNothing) {
  for (const char* text : {"{", "{}", "[]", R"({"allowTheRest":true})", R"({"allowTheRest":1,"rules":[]})",
                           R"({"allowTheRest":false,"rules":[{"target":"a"}]})",
                           R"({"allowTheRest":false,"rules":[{"allow":true}]})"})
    EXPECT_FALSE(policy_from(text)) << text;
}

}  // namespace
}  // namespace osb::server
