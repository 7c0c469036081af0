#include "execd/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace osb::execd {
namespace {

// A session whose leader waits while another group of it is in the foreground.
struct Job {
  explicit Job(const Terminal& terminal) {
    int ready[2];
    EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
    leader = ::fork();
    if (leader == 0) {
      ::setsid();
      ::ioctl(terminal.slave.get(), TIOCSCTTY, 0);
      ::signal(SIGTTOU, SIG_IGN);
      pid_t job = ::fork();
      if (job == 0) {
        ::setpgid(0, 0);
        for (;;) ::pause();
      }
      ::setpgid(job, job);
      ::tcsetpgrp(terminal.slave.get(), job);
      [[maybe_unused]] ssize_t said = ::write(ready[1], "x", 1);
      int status = 0;
      ::waitpid(job, &status, 0);
      ::_exit(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
  }
  // The signal that ended the job, as its leader saw it; 0 when it was the leader that was hit.
  int ended_by() const {
    int status = 0;
    ::waitpid(leader, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  }
  pid_t leader = -1;
};

TEST(Terminal, SignalsReachTheForegroundGroupAndNotItsSessionsLeader) {
  for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGKILL}) {
    auto terminal = open_terminal({});
    ASSERT_TRUE(terminal) << terminal.error().message;
    Job job(*terminal);
    EXPECT_TRUE(signal_foreground(terminal->master.get(), job.leader, signal));
    EXPECT_EQ(job.ended_by(), signal);
  }
}

TEST(Terminal, AGroupOfAnotherSessionIsLeftAlone) {
  auto terminal = open_terminal({});
  ASSERT_TRUE(terminal);
  Job job(*terminal);
  EXPECT_FALSE(signal_foreground(terminal->master.get(), ::getpid(), SIGTERM));
  EXPECT_TRUE(signal_foreground(terminal->master.get(), job.leader, SIGTERM));
  EXPECT_EQ(job.ended_by(), SIGTERM);
}

}  // namespace
}  // namespace osb::execd
