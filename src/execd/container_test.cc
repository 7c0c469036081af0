#include "execd/container.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "io/socket.h"
#include "sys/descriptors.h"

namespace osb::execd {
namespace {

namespace fs = std::filesystem;

// What comes instead of the listeners, over a real socket.
Result<void> take_from(const std::function<void(int)>& serve, const std::vector<std::string>& shown = {}) {
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
  auto taken = take_listeners(path, shown);
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

// The listeners, then what execd says is shown, then `answer`.
std::function<void(int)> hear(size_t lines, std::string& heard, std::string_view answer) {
  return [lines, &heard, answer](int peer) {
    // Not `peer` itself: who has it would never see its end.
    Fd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int given[] = {other.get(), other.get(), other.get()};
    EXPECT_EQ(sys::send_with_descriptors(peer, "l", given), 0);
    char byte = 0;
    while (static_cast<size_t>(std::ranges::count(heard, '\n')) < lines && ::read(peer, &byte, 1) == 1)
      heard += byte;
    EXPECT_TRUE(write_all(peer, answer));
  };
}

class ContainerShown : public testing::Test {
 protected:
  ContainerShown() {
    char name[] = "/tmp/osb-shown-XXXXXX";
    directory_ = ::mkdtemp(name);
    fs::create_directories(directory_ + "/plain");
    fs::create_directory_symlink("/proc", directory_ + "/link");
  }
  ~ContainerShown() override { fs::remove_all(directory_); }
  std::string say(const std::vector<std::string>& shown) {
    std::string heard;
    EXPECT_EQ(take_from(hear(shown.size(), heard, ""), shown).error().code, Code::permission_denied);
    return heard;
  }
  std::string directory_;
};

TEST_F(ContainerShown, WhatIsMountedIsTold) {
  struct stat proc{};
  ASSERT_EQ(::stat("/proc", &proc), 0);
  EXPECT_EQ(say({"/proc"}), std::to_string(proc.st_dev) + " " + std::to_string(proc.st_ino) + "\n");
}

TEST_F(ContainerShown, LinksAreNotFollowed) {
  EXPECT_EQ(say({directory_ + "/link"}), "0 " + std::to_string(ENOTDIR) + "\n");
  EXPECT_EQ(say({directory_ + "/link/self/fd"}), "0 " + std::to_string(ENOTDIR) + "\n") << "nor on the way";
  EXPECT_EQ(say({directory_ + "/plain/../plain"}), "0 " + std::to_string(ELOOP) + "\n");
}

TEST_F(ContainerShown, OnlyTheRootOfAMountCounts) {
  EXPECT_EQ(say({directory_ + "/plain", directory_ + "/none"}),
            "0 " + std::to_string(EXDEV) + "\n0 " + std::to_string(ENOENT) + "\n");
}

TEST_F(ContainerShown, PartsAreMadeAndTold) {
  std::ofstream(directory_ + "/file") << "text";
  std::string told = find_parts({directory_ + "/plain/new/part", directory_ + "/plain"});
  std::string wanted;
  for (const char* path : {"/plain/new/part", "/plain"}) {
    struct stat info{};
    ASSERT_EQ(::stat((directory_ + path).c_str(), &info), 0) << path;
    wanted += std::to_string(info.st_dev) + " " + std::to_string(info.st_ino) + "\n";
  }
  EXPECT_EQ(told, wanted);
  for (const char* path : {"/link", "/link/new", "/file", "/file/new"})
    EXPECT_EQ(find_parts({directory_ + path}), "0 " + std::to_string(ENOTDIR) + "\n") << path;
  EXPECT_EQ(find_parts({directory_ + "/plain/../x"}), "0 " + std::to_string(ELOOP) + "\n");
  EXPECT_FALSE(fs::exists(directory_ + "/x"));
}

TEST_F(ContainerShown, NothingGoesOnWithoutTheServersWord) {
  auto take = [](std::string_view answer) {
    std::string heard;
    return take_from(hear(1, heard, answer), {"/proc"});
  };
  EXPECT_EQ(take("").error().code, Code::permission_denied);
  EXPECT_EQ(take("n").error().code, Code::permission_denied);
  // It takes the numbers 3 to 5, which are somebody's in this process.
  EXPECT_EXIT(::_exit(take("g") ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace osb::execd
