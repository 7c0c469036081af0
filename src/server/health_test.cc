#include "server/health.h"

#include <gtest/gtest.h>

#include "server/test_loop.h"

namespace osb::server {
namespace {

io::Task<Result<void>> answer(Result<void> result, int* asked) {
  ++*asked;
  co_return result;
}

TEST(Health, SaysWhatIsWrong) {
  TestLoop loop;
  int asked = 0;
  Health health;
  health.add({"one", [&] { return answer({}, &asked); }, "nothing to do"});
  health.add({"two", [&] { return answer(fail(Code::unavailable, "a \"cause\""), &asked); }, "a remedy"});
  auto troubles = loop.await(health.look());
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_EQ(to_json(troubles),
            R"([{"name":"two","status":"failed","cause":"a \"cause\"","remedy":"a remedy"}])");
  EXPECT_EQ(loop.await(health.look()).size(), 1u) << "remembered";
  EXPECT_EQ(asked, 2) << "and not asked again at once";
}

}  // namespace
}  // namespace osb::server
