#include "cli/store_path.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fd.h"

namespace osb::cli {
namespace {

TEST(StorePath, OnlyADatabaseOrNothing) {
  std::string dir = testing::TempDir() + "store-path-XXXXXX";
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  auto file = [&](const char* name, std::string_view text) {
    std::string path = dir + "/" + name;
    EXPECT_TRUE(write_file(path, text, O_CREAT));
    return path;
  };
  EXPECT_TRUE(check_store_path(""));
  EXPECT_TRUE(check_store_path(dir + "/new.db"));
  EXPECT_TRUE(check_store_path(file("empty", "")));
  EXPECT_TRUE(check_store_path(file("database", std::string_view("SQLite format 3\0and more", 24))));
  for (const std::string& path :
       {dir, std::string("/dev/null"), dir + "/missing/new.db", file("text", "root:x:0:0"),
        file("short", "SQLite"), file("almost", "SQLite format 3 and more"), file("x", "x") + "/y"}) {
    auto checked = check_store_path(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_NE(checked.error().message.find("store.path"), std::string::npos) << path;
  }
  EXPECT_EQ(read_file(dir + "/text").value_or(""), "root:x:0:0");
  EXPECT_FALSE(std::filesystem::exists(dir + "/missing")) << "nothing is made";
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace osb::cli
