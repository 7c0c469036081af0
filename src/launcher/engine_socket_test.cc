#include "launcher/engine_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace osb::launcher {
namespace {

class EngineSocket : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/osb-engine-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/engine.sock";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(directory_.c_str());
  }
  Fd bound() {
    struct sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  std::string directory_, path_;
};

TEST_F(EngineSocket, IsConnected) {
  Fd listener = bound();
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  auto connection = connect_engine(path_);
  ASSERT_TRUE(connection) << connection.error().message;
  Fd accepted(::accept(listener.get(), nullptr, nullptr));
  ASSERT_TRUE(accepted.valid());
  ASSERT_EQ(::write(accepted.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(connection->get(), &byte, 1), 1);
}

TEST_F(EngineSocket, NobodyIsWaitedFor) {
  Fd listener = bound();
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<Fd> held;
  for (int i = 0; i < 16; ++i) {
    auto connection = connect_engine(path_);
    if (!connection) {
      EXPECT_EQ(connection.error().code, Code::exhausted);
      return;
    }
    held.push_back(std::move(*connection));
  }
  FAIL() << "its queue has no end";
}

TEST_F(EngineSocket, WhatIsNotThereIsSaid) {
  EXPECT_EQ(connect_engine(path_).error().sys_errno, ENOENT);
  Fd silent = bound();
  EXPECT_EQ(connect_engine(path_).error().sys_errno, ECONNREFUSED);
  EXPECT_EQ(connect_engine("").error().code, Code::invalid_argument);
  EXPECT_EQ(connect_engine("/" + std::string(107, 'a')).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace osb::launcher
