#include "execd/container.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "io/socket.h"
#include "sys/descriptors.h"

namespace osb::execd {
namespace {

// What comes instead of the listeners, over a real socket.
Result<void> take_from(const std::function<void(int)>& serve) {
  char name[] = "/tmp/osb-hub-XXXXXX";
  std::string directory = ::mkdtemp(name), path = directory + "/hub";
  auto listener = io::listen_unix(path, 1);
  EXPECT_TRUE(listener);
  std::thread server([&] {
    while (true) {
      Fd peer(::accept(listener->get(), nullptr, nullptr));
      if (!peer.valid()) continue;
      return serve(peer.get());
    }
  });
  auto taken = take_listeners(path);
  server.join();
  ::unlink(path.c_str());
  ::rmdir(directory.c_str());
  return taken;
}

TEST(Container, NobodyListens) {
  EXPECT_EQ(take_listeners("/nonexistent/hub").error().code, Code::not_found);
  EXPECT_EQ(take_listeners("/" + std::string(200, 'x')).error().code, Code::invalid_argument);
}

TEST(Container, WhatIsNotTheListenersIsRefused) {
  EXPECT_EQ(take_from([](int) {}).error().code, Code::corrupt) << "nothing";
  EXPECT_EQ(take_from([](int peer) { EXPECT_EQ(::write(peer, "l", 1), 1); }).error().code, Code::corrupt)
      << "no descriptors";
  auto two = [](int peer) {
    const int given[] = {peer, peer};
    EXPECT_EQ(sys::send_with_descriptors(peer, "l", given), 0);
  };
  EXPECT_EQ(take_from(two).error().code, Code::corrupt) << "too few";
}

}  // namespace
}  // namespace osb::execd
