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
  asio::steady_timer timer(co_await asio::this_coro::executor);
  std::optional<boost::system::error_code> seen;
  auto note = [&seen](const boost::system::error_code& error) { seen = error; };
  async_wait_running(timer, 1h, note);
  timer.cancel();
  co_await yield();
  co_await yield();
  EXPECT_TRUE(seen && *seen) << "a cancelled wait has an error";
}
TEST(RunningTime, WaitsAndIsCancelled) { run(short_limits()); }

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
