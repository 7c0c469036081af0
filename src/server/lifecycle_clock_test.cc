// A wall clock that somebody sets, and renewals by use.

#include "sandbox/create_request.h"
#include "server/access_renewal.h"
#include "server/lifecycle_fixture.h"

namespace osb::server {
namespace {

using ClockTest = LifecycleTest;

TEST_F(ClockTest, WhatIsDueByASetClockGoesAtOnce) {
  std::string id = create(seconds(3600));
  lifecycle_->start();
  loop_.settle();
  clock_.advance(std::chrono::hours(2));
  loop_.settle();
  EXPECT_EQ(state(id), "Running/RUNNING") << "the timer sleeps";
  lifecycle_->clock_was_set();
  wait_until([&] { return state(id) == "SANDBOX::NOT_FOUND"; });
  EXPECT_THAT(events(id), ElementsAre("Created", "Running", "Expired"));
}

class RenewalTest : public LifecycleTest {
 protected:
  ~RenewalTest() override { loop_.await(renewal_.close()); }
  sandbox::SandboxPtr make(const std::string& extend, std::optional<seconds> timeout = seconds(60)) {
    sandbox::CreateRequest request = plan(timeout);
    if (!extend.empty()) request.extensions[sandbox::kRenewExtension] = extend;
    auto made = loop_.await(lifecycle_->create(me_, std::move(request)));
    EXPECT_TRUE(made);
    return *get(made->id);
  }
  void use(const sandbox::SandboxPtr& row) {
    renewal_.accessed(**get(row->id));
    loop_.settle();
  }
  seconds left(const sandbox::SandboxPtr& row) {
    return std::chrono::duration_cast<seconds>(*(*get(row->id))->expires - clock_.now());
  }

  AccessRenewal renewal_{loop_.executor(), *lifecycle_, std::chrono::hours(1)};
};

TEST_F(RenewalTest, AUseRenewsOncePerInterval) {
  auto row = make("600");
  use(row);
  EXPECT_EQ(left(row), seconds(600));
  clock_.advance(seconds(100));
  use(row);
  EXPECT_EQ(left(row), seconds(500)) << "within the interval";
}

TEST_F(RenewalTest, NeverShortensAndOnlyWhereItWasAskedFor) {
  auto longer = make("600", seconds(3600)), plain = make(""), forever = make("600", std::nullopt);
  use(longer);
  use(plain);
  use(forever);
  EXPECT_EQ(left(longer), seconds(3600));
  EXPECT_EQ(left(plain), seconds(60));
  EXPECT_FALSE((*get(forever->id))->expires);
}

TEST_F(RenewalTest, OneThatFailedIsTriedWithTheNextUse) {
  auto row = make("600");
  auto copy = **get(row->id);
  ASSERT_TRUE(loop_.await(lifecycle_->remove(me_, row->id)));
  renewal_.accessed(copy);
  loop_.settle();
  EXPECT_EQ(state(row->id), "SANDBOX::NOT_FOUND");
}

}  // namespace
}  // namespace osb::server
