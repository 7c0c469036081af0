#include "docker/durable.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/testing.h"

namespace osb::docker {
namespace {

io::Task<> sync_some() {
  std::vector<Fd> fine;
  fine.push_back(*open_at(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(co_await bring_to_disk(std::move(fine)));
  int pipe[2];
  EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  Fd writer(pipe[1]);
  std::vector<Fd> none;
  none.emplace_back(pipe[0]);
  none.push_back(*open_at(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY));
  auto failed = co_await bring_to_disk(std::move(none));
  EXPECT_FALSE(failed) << "no disk has a pipe";
}

TEST(Durable, SaysWhatTheDiskSays) { io::testing::run(sync_some()); }

}  // namespace
}  // namespace osb::docker
