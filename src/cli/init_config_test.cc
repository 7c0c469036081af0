#include "cli/init_config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fd.h"

namespace osb::cli {
namespace {

class ConfigFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "osb-init-config-XXXXXX";
    dir_ = ::mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(ConfigFile, MakesParentsAndKeepsWhatExists) {
  std::string path = dir_ + "/a/b/config.toml";
  ASSERT_TRUE(write_config_file(path, "first", false));
  EXPECT_EQ(*read_file(path), "first");
  EXPECT_EQ(write_config_file(path, "second", false).error().code, Code::already_exists);
  EXPECT_EQ(*read_file(path), "first");
  ASSERT_TRUE(write_config_file(path, "2", true));
  EXPECT_EQ(*read_file(path), "2");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_ + "/a/b"), {}), 1);
}

TEST_F(ConfigFile, IsPrivate) {
  std::string path = dir_ + "/c";
  ASSERT_TRUE(write_config_file(path, "x", false));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(ConfigFile, SaysWhyItCannot) {
  ASSERT_TRUE(write_config_file(dir_ + "/file", "x", false));
  EXPECT_FALSE(write_config_file(dir_ + "/file/below", "x", false));
  EXPECT_FALSE(write_config_file(dir_, "x", true));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

}  // namespace
}  // namespace osb::cli
