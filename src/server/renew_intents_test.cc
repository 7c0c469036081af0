// Uses that others report; with a real Redis: tests/functional/test_renewal_redis.py.

#include "server/renew_intents.h"

#include "sandbox/create_request.h"
#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

class RenewIntentsTest : public LifecycleTest {
 protected:
  ~RenewIntentsTest() override {
    loop_.await(intents_.close());
    loop_.await(renewal_.close());
  }
  std::string make() {
    sandbox::CreateRequest request = plan(seconds(60));
    request.extensions[sandbox::kRenewExtension] = "600";
    return loop_.await(lifecycle_->create(me_, std::move(request)))->id;
  }
  void push(const std::string& id, seconds age = {}) {
    loop_.await(intents_.handle(R"({"sandbox_id":")" + id + R"(","observed_at":")" +
                                format_time(clock_.now() - age, 6) + "\"}"));
    loop_.settle();
  }
  seconds left(const std::string& id) {
    return std::chrono::duration_cast<seconds>(*(*get(id))->expires - clock_.now());
  }

  AccessRenewal renewal_{loop_.executor(), *lifecycle_, std::chrono::hours(1)};
  RenewIntents intents_{loop_.executor(), repository_, renewal_, {}, clock_};
};

TEST_F(RenewIntentsTest, OneRenewsAndFurtherOnesChangeNothing) {
  std::string id = make();
  push(id);
  EXPECT_EQ(left(id), seconds(600));
  clock_.advance(seconds(100));
  for (int i = 0; i < 100; ++i) push(id);
  EXPECT_EQ(left(id), seconds(500)) << "within the interval";
  EXPECT_EQ(intents_.dropped().malformed + intents_.dropped().old, 0u);
}

TEST_F(RenewIntentsTest, OldAndMalformedOnesAreCountedAndChangeNothing) {
  std::string id = make();
  push(id, seconds(301));
  loop_.await(intents_.handle("{"));
  loop_.await(intents_.handle(id));
  EXPECT_EQ(left(id), seconds(60));
  EXPECT_EQ(intents_.dropped().old, 1u);
  EXPECT_EQ(intents_.dropped().malformed, 2u);
  push(id, seconds(300));
  EXPECT_EQ(left(id), seconds(600));
}

TEST_F(RenewIntentsTest, UnknownAndPausedOnesAreLeftAlone) {
  std::string id = make();
  push("0198c0de-0000-7000-8000-000000000001");
  ASSERT_TRUE(loop_.await(lifecycle_->pause(me_, id)));
  push(id);
  EXPECT_EQ(left(id), seconds(60));
  ASSERT_TRUE(loop_.await(lifecycle_->resume(me_, id)));
  push(id);
  EXPECT_EQ(left(id), seconds(600));
}

}  // namespace
}  // namespace osb::server
