#include "launcher/waiting_outlets.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

namespace osb::launcher {
namespace {

using Watched = WaitingOutlets::Watched;

sys::Outlet two(uint64_t arrived = 0) {
  sys::Outlet made;
  made.emplace_back(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  made.emplace_back(::eventfd(static_cast<unsigned>(arrived), EFD_CLOEXEC | EFD_NONBLOCK));
  return made;
}

bool readable(const WaitingOutlets& outlets) {
  struct pollfd ready{outlets.fd(), POLLIN, 0};
  return ::poll(&ready, 1, 0) == 1;
}

TEST(WaitingOutlets, TellWhereSomethingArrived) {
  auto outlets = *WaitingOutlets::open();
  outlets.put("a", two(), Watched::yes);
  EXPECT_FALSE(readable(outlets));
  EXPECT_EQ(outlets.next(), std::nullopt);
  outlets.put("b", two(1), Watched::yes);
  EXPECT_TRUE(readable(outlets));
  EXPECT_EQ(outlets.next(), "b");
  EXPECT_EQ(outlets.next(), "b") << "it stays until it is taken";
  EXPECT_EQ(outlets.take("b").size(), 2u);
  EXPECT_FALSE(readable(outlets));
  EXPECT_FALSE(outlets.contains("b"));
  EXPECT_TRUE(outlets.contains("a"));
}

TEST(WaitingOutlets, OneThatIsTakenIsNotToldOfThoughItsSocketsLive) {
  auto outlets = *WaitingOutlets::open();
  outlets.put("a", two(1), Watched::yes);
  sys::Outlet kept = outlets.take("a");
  EXPECT_FALSE(readable(outlets));
  EXPECT_TRUE(outlets.take("a").empty());
}

TEST(WaitingOutlets, OneThatIsNotWatchedWaitsInSilence) {
  auto outlets = *WaitingOutlets::open();
  outlets.put("a", two(1), Watched::no);
  EXPECT_FALSE(readable(outlets));
  EXPECT_EQ(outlets.take("a").size(), 2u);
}

TEST(WaitingOutlets, ALaterOutletReplacesTheEarlierOne) {
  auto outlets = *WaitingOutlets::open();
  outlets.put("a", two(1), Watched::yes);
  outlets.put("a", two(), Watched::yes);
  EXPECT_FALSE(readable(outlets));
}

}  // namespace
}  // namespace osb::launcher
