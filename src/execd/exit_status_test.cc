#include "execd/exit_status.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

namespace osb::execd {
namespace {

TEST(ExitStatus, words_and_codes) {
  EXPECT_TRUE(ExitStatus(0).success());
  EXPECT_EQ(ExitStatus(0).api_code(), 0);
  EXPECT_EQ(ExitStatus(W_EXITCODE(3, 0)).text(), "exit status 3");
  EXPECT_EQ(ExitStatus(W_EXITCODE(3, 0)).api_code(), 3);
  EXPECT_EQ(ExitStatus(W_EXITCODE(255, 0)).api_code(), 255);
  EXPECT_EQ(ExitStatus(SIGKILL).text(), "signal: killed");
  EXPECT_EQ(ExitStatus(SIGKILL).api_code(), -1);
  EXPECT_EQ(ExitStatus(SIGTERM).signal(), SIGTERM);
  EXPECT_EQ(ExitStatus(SIGABRT | WCOREFLAG).text(), "signal: aborted (core dumped)");
  EXPECT_EQ(ExitStatus(40).text(), "signal: signal 40");
  EXPECT_FALSE(ExitStatus(SIGKILL).success());
}

TEST(SignalNumber, only_those_a_client_may_send) {
  EXPECT_EQ(signal_number("SIGINT"), SIGINT);
  EXPECT_EQ(signal_number("SIGSTOP"), 0);
  EXPECT_EQ(signal_number("INT"), 0);
  EXPECT_EQ(signal_number(""), 0);
}

}  // namespace
}  // namespace osb::execd
