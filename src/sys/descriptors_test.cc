#include "sys/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace osb::sys {
namespace {

class DescriptorsTest : public testing::Test {
 protected:
  void SetUp() override {
    int pair[2], pipe[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    here_ = Fd(pair[0]);
    there_ = Fd(pair[1]);
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
    reading_ = Fd(pipe[0]);
    writing_ = Fd(pipe[1]);
  }
  // Nobody but the test itself has the pipe's other end.
  bool nobody_holds() {
    writing_.reset();
    char byte;
    return ::read(reading_.get(), &byte, 1) == 0;
  }
  Fd here_, there_, reading_, writing_;
  char bytes_[64];
  std::vector<Fd> arrived_;
};

TEST_F(DescriptorsTest, TravelWithTheirBytes) {
  int sent[] = {writing_.get(), writing_.get()};
  ASSERT_EQ(send_with_descriptors(here_.get(), "hello", sent), 0);
  auto size = receive_with_descriptors(there_.get(), bytes_, arrived_);
  ASSERT_TRUE(size);
  EXPECT_EQ(std::string_view(bytes_, *size), "hello");
  ASSERT_EQ(arrived_.size(), 2u);
  EXPECT_TRUE(::fcntl(arrived_[0].get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(::write(arrived_[1].get(), "x", 1), 1);
}

TEST_F(DescriptorsTest, AsManyAsFitAndNoMore) {
  std::vector<int> many(kMostDescriptors, writing_.get());
  EXPECT_EQ(send_with_descriptors(here_.get(), "x", many), 0);
  EXPECT_TRUE(receive_with_descriptors(there_.get(), bytes_, arrived_));
  EXPECT_EQ(arrived_.size(), kMostDescriptors);
  many.push_back(writing_.get());
  EXPECT_EQ(send_with_descriptors(here_.get(), "x", many), -E2BIG);
}

TEST_F(DescriptorsTest, OfAMessageThatIsCutAreClosed) {
  int sent[] = {writing_.get()};
  ASSERT_EQ(send_with_descriptors(here_.get(), std::string(100, 'x'), sent), 0);
  auto size = receive_with_descriptors(there_.get(), bytes_, arrived_);
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, Code::too_large);
  EXPECT_TRUE(arrived_.empty());
  EXPECT_TRUE(nobody_holds());
}

TEST_F(DescriptorsTest, APeerThatIsGoneAndOneThatIsSilent) {
  auto silent = receive_with_descriptors(there_.get(), bytes_, arrived_);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, Code::exhausted);
  here_.reset();
  auto gone = receive_with_descriptors(there_.get(), bytes_, arrived_);
  ASSERT_TRUE(gone);
  EXPECT_EQ(*gone, 0u);
  EXPECT_EQ(send_with_descriptors(there_.get(), "x", {}), -EPIPE);
}

}  // namespace
}  // namespace osb::sys
