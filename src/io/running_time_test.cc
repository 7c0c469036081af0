#include "io/running_time.h"

#include <gtest/gtest.h>

#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>

#include "io/testing.h"

namespace osb::io {
namespace {

using namespace std::chrono_literals;
using detail::left_after;
using detail::Moment;
using testing::run;

TEST(RunningTime, ASliceCountsUnlessTheProcessWasStoppedInIt) {
  Moment from{100s};
  EXPECT_EQ(left_after(10s, 1s, from, from + 1s), 9s);
  EXPECT_EQ(left_after(10s, 1s, from, from + 1900ms), 8100ms) << "late, as on a busy machine";
  EXPECT_EQ(left_after(10s, 1s, from, from + 60s), 10s) << "frozen";
  EXPECT_LE(left_after(500ms, 500ms, from, from + 501ms), 0s);
}

Task<> short_limits() {
  auto before = std::chrono::steady_clock::now();
  co_await sleep_running(20ms);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 20ms);
  int fired = 0;
  {
    RunningTimer timer(co_await asio::this_coro::executor);
    timer.start(5ms, [&] { ++fired; });
    co_await sleep_for(30ms);
    EXPECT_EQ(fired, 1);
    timer.start(1ms, [&] { ++fired; });
    timer.cancel();
    timer.start(1ms, [&] { ++fired; });
  }
  co_await sleep_for(10ms);
  EXPECT_EQ(fired, 1) << "cancelled, and gone with its timer";
}
TEST(RunningTime, WaitsAndIsCancelled) { run(short_limits()); }

// Stands for the completion handler of a wait that is cancelled, or not.
struct Waiter {
  asio::cancellation_type_t asked;
  std::optional<boost::system::error_code>* seen;
  asio::cancellation_type_t cancelled() const { return asked; }
  void complete(const boost::system::error_code& error) { *seen = error; }
  void operator()(const boost::system::error_code&) {}
};

Task<> cancelled_between_slices() {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (auto asked : {asio::cancellation_type::none, asio::cancellation_type::terminal}) {
    std::optional<boost::system::error_code> seen;
    Waiter waiter{asked, &seen};
    detail::RunningWait wait{timer, 1h, kSlice, std::chrono::steady_clock::now() - kSlice, true};
    wait(waiter, boost::system::error_code{});  // the slice is over
    if (asked == asio::cancellation_type::none)
      EXPECT_FALSE(seen) << "the next slice";
    else
      EXPECT_TRUE(seen && *seen == asio::error::operation_aborted);
  }
  timer.cancel();
  co_await yield();
}
TEST(RunningTime, ACancellationThatComesBetweenSlicesCounts) { run(cancelled_between_slices()); }

Task<Result<void>> never() {
  co_await sleep_for(1h);
  co_return Result<void>{};
}
Task<Result<void>> after(Duration time) {
  co_await sleep_for(time);
  co_return Result<void>{};
}

Task<> limits_for_others() {
  Duration stopped{};
  auto plain = co_await with_deadline_for(5ms, "x", [&] { return stopped; }, never());
  EXPECT_EQ(plain.error().code, Code::timeout);
  int asked = 0;
  // Says at the first expiry that it had been stopped all the time.
  auto stopping = [&asked] { return asked++ == 0 ? Duration{} : Duration{5ms}; };
  auto done = co_await with_deadline_for(5ms, "x", stopping, after(50ms));
  EXPECT_TRUE(done);
}
TEST(RunningTime, LimitsOnOthersWaitForThem) { run(limits_for_others()); }

}  // namespace
}  // namespace osb::io
