#include "execd/knocks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "base/knock.h"
#include "io/testing.h"

namespace osb::execd {
namespace {

const std::string kSecret(knock::kSecret, 'a');

// Without waiting for what the other side does with it.
struct Caller {
  explicit Caller(uint16_t port) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{10, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  std::string read(size_t size) const {
    std::string out(size, ' ');
    ssize_t got = ::recv(fd.get(), out.data(), size, MSG_WAITALL);
    out.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return out;
  }
  // Sooner than it would be for its silence.
  bool is_sent_away() const {
    timeval limit{2, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte = 0;
    ssize_t got = ::recv(fd.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }
  void say(std::string_view text) const {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Whether it was let in.
  std::optional<bool> knock(const std::string& secret, knock::Wish wish) const {
    std::string challenge = read(knock::kChallenge), request = knock::ask(secret, challenge, wish);
    say(request);
    return knock::read_answer(secret, challenge, request, read(knock::kAnswer));
  }
  Fd fd;
};

uint16_t port_of(int listener) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size), 0);
  return ntohs(at.sin_port);
}

// What `call` does while execd's door is open; how many were let in for the API and for control.
struct LetIn {
  int api = 0, control = 0;
};
LetIn with_door(const std::function<void(uint16_t)>& call) {
  io::asio::io_context loop(1);
  auto reaper = Reaper::create(loop.get_executor());
  EXPECT_TRUE(reaper);
  Core core(loop.get_executor(), **reaper);
  auto listener = io::listen_tcp("127.0.0.1", 0, 256);
  EXPECT_TRUE(listener);
  uint16_t port = port_of(listener->get());
  LetIn out;
  std::vector<io::Socket> kept;
  auto keep = [&](int& count) {
    return [&](io::Socket socket) {
      ++count;
      kept.push_back(std::move(socket));
    };
  };
  core.tasks.spawn(answer_knocks(core, std::move(*listener), kSecret,
                                 {.api = keep(out.api), .control = keep(out.control)}));
  std::thread caller([&] {
    call(port);
    io::asio::post(loop, [&] { loop.stop(); });
  });
  loop.run_for(std::chrono::seconds(30));
  caller.join();
  io::testing::run(loop, core.tasks.close());
  return out;
}

TEST(Knocks, WhoHasTheSecretGetsWhatItAsksFor) {
  LetIn in = with_door([](uint16_t port) {
    EXPECT_EQ(Caller(port).knock(kSecret, {knock::Kind::api, 0}), true);
    EXPECT_EQ(Caller(port).knock(kSecret, {knock::Kind::control, 0}), true);
    EXPECT_EQ(Caller(port).knock(kSecret, {knock::Kind::control, 0}), true);
  });
  EXPECT_EQ(in.api, 1);
  EXPECT_EQ(in.control, 2);
}

TEST(Knocks, OthersAreSentAway) {
  LetIn in = with_door([](uint16_t port) {
    EXPECT_FALSE(Caller(port).knock(std::string(knock::kSecret, 'b'), {knock::Kind::api, 0}));
    Caller stranger(port);
    EXPECT_EQ(stranger.read(knock::kChallenge).size(), knock::kChallenge);
    stranger.say("GET /ping HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(100, 'x'));
    EXPECT_EQ(stranger.read(1), "");
  });
  EXPECT_EQ(in.api + in.control, 0);
}

TEST(Knocks, APortIsJoinedToItsProgram) {
  auto program = io::listen_tcp("127.0.0.1", 0, 1);
  ASSERT_TRUE(program);
  uint16_t wanted = port_of(program->get());
  LetIn in = with_door([&](uint16_t port) {
    Caller caller(port);
    ASSERT_EQ(caller.knock(kSecret, {knock::Kind::port, wanted}), true);
    Fd inside;
    while (!inside.valid()) inside = Fd(::accept4(program->get(), nullptr, nullptr, SOCK_CLOEXEC));
    caller.say("question");
    char heard[8];
    EXPECT_EQ(::recv(inside.get(), heard, sizeof heard, MSG_WAITALL), 8);
    EXPECT_EQ(::send(inside.get(), "answer", 6, MSG_NOSIGNAL), 6);
    EXPECT_EQ(caller.read(6), "answer");
    inside.reset();
    EXPECT_EQ(caller.read(1), "") << "its end is the other's";
    program->reset();
    EXPECT_EQ(Caller(port).knock(kSecret, {knock::Kind::port, wanted}), false) << "nobody listens there now";
  });
  EXPECT_EQ(in.api + in.control, 0) << "not even when there is nobody";
}

TEST(Knocks, ACrowdThatSaysNothingKeepsNobodyOut) {
  LetIn in = with_door([](uint16_t port) {
    std::vector<std::unique_ptr<Caller>> crowd;
    for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<Caller>(port));
    EXPECT_EQ(Caller(port).knock(kSecret, {knock::Kind::api, 0}), true);
    EXPECT_EQ(crowd.front()->read(knock::kChallenge).size(), knock::kChallenge);
    EXPECT_TRUE(crowd.front()->is_sent_away()) << "the first ones had to go, before their time was up";
    EXPECT_FALSE(crowd.back()->read(knock::kChallenge).empty()) << "the last ones may still speak";
  });
  EXPECT_EQ(in.api, 1);
}

TEST(Knocks, ASecretIsReadFromAFile) {
  char name[] = "/tmp/osb-secret-XXXXXX";
  Fd file(::mkstemp(name));
  EXPECT_EQ(read_secret(name).error().code, Code::corrupt);
  ASSERT_TRUE(write_all(file.get(), kSecret + "\n"));
  EXPECT_EQ(*read_secret(name), kSecret);
  ASSERT_TRUE(write_all(file.get(), "more"));
  EXPECT_EQ(read_secret(name).error().code, Code::corrupt);
  ::unlink(name);
  EXPECT_EQ(read_secret(name).error().code, Code::not_found);
}

TEST(Knocks, ASecretIsHandedOver) {
  auto taken = [](std::string_view said) {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    Fd read(fds[0]), write(fds[1]);
    EXPECT_TRUE(write_all(write.get(), said));
    write.reset();
    auto secret = take_secret(read.get());
    char more = 0;
    if (secret) EXPECT_EQ(::read(read.get(), &more, 1), 0) << "what else comes is nobody's";
    return secret;
  };
  EXPECT_EQ(*taken(kSecret), kSecret);
  EXPECT_EQ(*taken(kSecret + "and more"), kSecret);
  EXPECT_FALSE(taken(""));
  EXPECT_FALSE(taken(kSecret.substr(1)));
  EXPECT_FALSE(taken(std::string(knock::kSecret, 'g')));
}

}  // namespace
}  // namespace osb::execd
