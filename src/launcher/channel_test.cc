#include "launcher/channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace osb::launcher {
namespace {

using testing::HasSubstr;

class ChannelTest : public testing::Test {
 protected:
  explicit ChannelTest(VerbSet allowed = VerbSet::all()) : channel_("ingress", allowed, make_pair()) {}

  Fd make_pair() {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    peer_ = Fd(pair[1]);
    return Fd(pair[0]);
  }
  void say(Verb verb, uint64_t tag = 1) {
    ASSERT_TRUE(send_message(peer_.get(), encode(Request{tag, verb, "body"}), {}));
  }
  Answer hear() {
    auto received = receive_message(peer_.get());
    EXPECT_TRUE(received);
    auto answer = received ? decode_answer(received->bytes) : fail(Code::internal, "nothing was said");
    EXPECT_TRUE(answer);
    return answer ? std::move(*answer) : Answer{};
  }

  Fd peer_;
  Channel channel_;
};

class WithHealthOnly : public ChannelTest {
 protected:
  WithHealthOnly() : ChannelTest({Verb::health}) {}
};

TEST_F(ChannelTest, RequestsComeOneByOne) {
  say(Verb::list, 1);
  say(Verb::health, 2);
  EXPECT_EQ(channel_.receive()->value().tag, 1u);
  EXPECT_EQ(channel_.receive()->value().verb, Verb::health);
  auto nothing = channel_.receive();
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
}

TEST_F(WithHealthOnly, AskedForMoreIsRefusedByName) {
  for (int i = 1; i <= static_cast<int>(kLastVerb); ++i) {
    auto verb = static_cast<Verb>(i);
    say(verb, static_cast<uint64_t>(i));
    auto request = channel_.receive();
    ASSERT_TRUE(request);
    EXPECT_EQ(request->has_value(), verb == Verb::health);
    if (request->has_value()) continue;
    Answer refusal = hear();
    EXPECT_EQ(refusal.tag, static_cast<uint64_t>(i));
    EXPECT_EQ(refusal.error, EPERM);
    EXPECT_EQ(static_cast<Code>(refusal.code), Code::permission_denied);
    EXPECT_EQ(refusal.message, "refused: the ingress may not ask for " + std::string(to_string(verb)));
  }
}

TEST_F(ChannelTest, APeerThatIsGoneIsUnavailable) {
  peer_.reset();
  auto gone = channel_.receive();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::unavailable);
}

TEST_F(ChannelTest, NonsenseIsNoRequest) {
  std::string good = encode(Request{1, Verb::list, ""});
  for (const std::string& bytes :
       {std::string("\0", 1), good.substr(0, good.size() - 1), good + "x", "\1" + good.substr(1),
        std::string(100, '\0'), std::string(1000, '\xff')}) {
    ASSERT_TRUE(send_message(peer_.get(), bytes, {}));
    auto wrong = channel_.receive();
    ASSERT_FALSE(wrong) << bytes.size();
    EXPECT_NE(wrong.error().code, Code::unavailable);
    EXPECT_THAT(wrong.error().message, HasSubstr("the ingress sent nonsense"));
  }
}

TEST_F(ChannelTest, DescriptorsThatComeWithARequestAreClosed) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
  Fd reading(pipe[0]);
  std::vector<Fd> sent;
  sent.emplace_back(pipe[1]);
  ASSERT_TRUE(send_message(peer_.get(), encode(Request{1, Verb::list, ""}), sent));
  sent.clear();
  EXPECT_TRUE(channel_.receive()->has_value());
  char byte;
  EXPECT_EQ(::read(reading.get(), &byte, 1), 0) << "somebody holds the other end";
}

TEST_F(ChannelTest, AnswersWaitForAPeerThatDoesNotReadAndRequestsWaitForThem) {
  uint64_t sent = 0;
  while (channel_.interest(false) == EPOLLIN) {
    ASSERT_TRUE(
        channel_.answer({.tag = ++sent, .message = std::string(1000, 'x'), .body = {}, .descriptors = {}}));
    ASSERT_LT(sent, 100'000u);
  }
  EXPECT_EQ(channel_.interest(true), EPOLLOUT);
  say(Verb::list);
  EXPECT_FALSE(channel_.receive()->has_value()) << "a request was read while answers wait";
  for (uint64_t tag = 1; tag <= sent; ++tag) {
    EXPECT_EQ(hear().tag, tag);
    ASSERT_TRUE(channel_.flush());
  }
  EXPECT_EQ(channel_.interest(false), EPOLLIN);
  EXPECT_EQ(channel_.interest(true), 0u);
  EXPECT_TRUE(channel_.receive()->has_value());
}

TEST_F(ChannelTest, AnAnswerThatCannotBeSentIsAnErrorOnce) {
  peer_.reset();
  auto sent = channel_.answer({.tag = 1, .message = {}, .body = {}, .descriptors = {}});
  ASSERT_FALSE(sent);
  EXPECT_THAT(sent.error().message, HasSubstr("the ingress does not take its answers"));
  EXPECT_EQ(channel_.interest(false), EPOLLIN);
}

}  // namespace
}  // namespace osb::launcher
