#include "cli/store_path.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"

namespace osb::cli {
namespace {

using testing::HasSubstr;

class StorePath : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = testing::TempDir() + "store-path-XXXXXX";
    ASSERT_NE(::mkdtemp(dir_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string file(const char* name, std::string_view text) {
    std::string path = dir_ + "/" + name;
    EXPECT_TRUE(write_file(path, text, O_CREAT));
    return path;
  }
  // As whoever runs the test, unless another account is named.
  Result<void> check(const std::string& path, runtime::ServiceAccount account = {}) {
    server::Config config;
    config.source = "config.toml";
    config.lines["store.path"] = 3;
    config.store_path = path;
    return check_store_path(config, account);
  }

  std::string dir_;
};

TEST_F(StorePath, OnlyADatabaseOrNothing) {
  EXPECT_TRUE(check(""));
  EXPECT_TRUE(check(dir_ + "/new.db"));
  EXPECT_TRUE(check(file("empty", "")));
  EXPECT_TRUE(check(file("database", std::string_view("SQLite format 3\0and more", 24))));
  for (const std::string& path :
       {dir_, std::string("/dev/null"), dir_ + "/missing/new.db", file("text", "root:x:0:0"),
        file("short", "SQLite"), file("almost", "SQLite format 3 and more"), file("x", "x") + "/y"}) {
    auto checked = check(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_THAT(checked.error().message, HasSubstr("config.toml:3: store.path: ")) << path;
    EXPECT_THAT(checked.error().message, HasSubstr("remedy: ")) << path;
  }
  EXPECT_EQ(read_file(dir_ + "/text").value_or(""), "root:x:0:0");
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/missing")) << "nothing is made";
}

TEST_F(StorePath, TheServicesUserHasToBeAbleToWriteThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can try as somebody else";
  constexpr runtime::ServiceAccount kNobody{65534, 65534};
  ASSERT_EQ(::chmod(dir_.c_str(), 0700), 0);
  auto checked = check(dir_ + "/new.db", kNobody);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("uid 65534"));
  EXPECT_THAT(checked.error().message, HasSubstr("remove path"));
  EXPECT_FALSE(std::filesystem::exists(dir_ + "/new.db"));
  // Others may enter, and not write; then write, but not this file.
  ASSERT_EQ(::chmod(dir_.c_str(), 0755), 0);
  EXPECT_FALSE(check(dir_ + "/new.db", kNobody));
  ASSERT_EQ(::chmod(dir_.c_str(), 0777), 0);
  EXPECT_TRUE(check(dir_ + "/new.db", kNobody));
  EXPECT_FALSE(check(file("roots", ""), kNobody));
}

TEST_F(StorePath, AnEarlierDatabaseInTheUsualPlaceOfOthersIsNotForgotten) {
  server::Config config;
  config.others_store_path = dir_ + "/opensandbox.db";
  EXPECT_TRUE(check_store_path(config, {})) << "there is none";
  std::string bytes(100, '\0');
  file("opensandbox.db", bytes);
  EXPECT_TRUE(check_store_path(config, {})) << "no version: one of others";
  bytes[63] = 3;
  ASSERT_TRUE(write_file(config.others_store_path, bytes, O_TRUNC));
  auto checked = check_store_path(config, {});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("write path = \"" + config.others_store_path));
}

}  // namespace
}  // namespace osb::cli
