#include "registry/connection.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace osb::registry {
namespace {

constexpr std::chrono::seconds kPatience(5);

// Takes one connection on loopback, keeps what it reads first, and answers that.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }

  Url url() const { return {.tls = true, .host = "127.0.0.1", .port = port_}; }

  Result<bool> answering(std::string_view answer) {
    EXPECT_EQ(::listen(socket_.get(), 1), 0);
    std::thread server([&] {
      Fd peer(::accept(socket_.get(), nullptr, nullptr));
      char bytes[4096];
      heard_.assign(bytes,
                    static_cast<size_t>(std::max<ssize_t>(0, ::read(peer.get(), bytes, sizeof bytes))));
      (void)!::write(peer.get(), answer.data(), answer.size());
    });
    auto found = speaks_tls(url(), kPatience);
    server.join();
    return found;
  }
  const std::string& heard() const { return heard_; }

 private:
  Fd socket_;
  uint16_t port_ = 0;
  std::string heard_;
};

TEST(SpeaksTls, TheFirstByteSays) {
  for (std::string_view tls :
       {std::string_view("\x15\x03\x03\x00\x02\x02\x28"), std::string_view("\x16\x03\x03")})
    EXPECT_TRUE(*Listener().answering(tls));
  for (std::string_view plain : {"HTTP/1.1 400 Bad Request\r\n\r\n", "<html>", "\x17"})
    EXPECT_FALSE(*Listener().answering(plain));
}

TEST(SpeaksTls, TheQuestionIsARecordOfTlsAndTheEndOfARequest) {
  Listener listener;
  ASSERT_TRUE(listener.answering("\x15"));
  const std::string& hello = listener.heard();
  ASSERT_GT(hello.size(), 9u);
  EXPECT_EQ(hello.substr(0, 2), "\x16\x03");
  EXPECT_EQ(static_cast<unsigned char>(hello[3]) * 256u + static_cast<unsigned char>(hello[4]),
            hello.size() - 5);
  EXPECT_EQ(static_cast<unsigned char>(hello[8]), hello.size() - 9);
  EXPECT_NE(hello.find("\r\n\r\n"), hello.npos);
}

TEST(SpeaksTls, WhoHangsUpHasSaidNothing) {
  auto found = Listener().answering("");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::unavailable);
  EXPECT_NE(found.error().message.find("registry.plain_hosts"), std::string::npos);
}

TEST(SpeaksTls, NobodyListens) {
  auto found = speaks_tls(Listener().url(), kPatience);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::unavailable);
  EXPECT_EQ(found.error().sys_errno, ECONNREFUSED);
}

}  // namespace
}  // namespace osb::registry
