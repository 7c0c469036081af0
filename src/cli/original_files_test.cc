#include "cli/original_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace osb::cli {
namespace {

class OriginalFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::canonical(testing::TempDir()).string() + "/original.XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    std::filesystem::create_directories(place() + "/_expiration");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string place() const { return directory_ + "/metadata"; }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(place() + "/" + name, text, O_CREAT | O_WRONLY));
  }

  std::string directory_;
};

TEST_F(OriginalFiles, BothKinds) {
  write("a.json", R"({"team":"blue"})");
  write("_expiration/a.json", R"({"expires_at":"2026-01-02T03:04:05+00:00"})");
  write("_expiration/b.json", R"({"expires_at":"2026-01-02T03:04:06+00:00"})");
  auto notes = read_original_files(place());
  ASSERT_TRUE(notes) << notes.error().message;
  ASSERT_EQ(notes->size(), 2u);
  EXPECT_EQ(notes->at("a").metadata->at("team"), "blue");
  EXPECT_EQ(notes->at("a").expires, *parse_time("2026-01-02T03:04:05Z"));
  EXPECT_FALSE(notes->at("b").metadata);
}

TEST_F(OriginalFiles, WhatIsLeftOut) {
  write("a.json", R"({"team":"blue"})");
  write("a.json.tmp", "{}");
  write(".hidden.json", "{}");
  write("a b.json", "{}");
  write("large.json", std::string(70 << 10, ' ') + "{}");
  ASSERT_TRUE(write_file(directory_ + "/secret.json", R"({"key":"s"})", O_CREAT | O_WRONLY));
  std::filesystem::create_symlink(directory_ + "/secret.json", place() + "/link.json");
  std::filesystem::create_hard_link(directory_ + "/secret.json", place() + "/hard.json");
  std::filesystem::create_directory(place() + "/directory.json");
  ASSERT_EQ(::mkfifo((place() + "/pipe.json").c_str(), 0600), 0);
  auto notes = read_original_files(place());
  ASSERT_TRUE(notes) << notes.error().message;
  EXPECT_EQ(notes->size(), 1u);
  EXPECT_TRUE(notes->contains("a"));
}

TEST_F(OriginalFiles, AnExpiryThatCannotBeReadIsNotLeftOut) {
  write("_expiration/a.json", R"({"expires_at":"2026-01-02T03:04:05+00:00"})");
  write("_expiration/no id.json", "{}");
  EXPECT_TRUE(read_original_files(place()));
  write("_expiration/b.json", R"({"expires_at":"soon"})");
  auto notes = read_original_files(place());
  ASSERT_FALSE(notes);
  EXPECT_NE(notes.error().message.find("b.json"), std::string::npos) << notes.error().message;
  std::filesystem::remove(place() + "/_expiration/b.json");
  std::filesystem::create_symlink(directory_ + "/none", place() + "/_expiration/c.json");
  notes = read_original_files(place());
  ASSERT_FALSE(notes);
  EXPECT_NE(notes.error().message.find("c.json"), std::string::npos) << notes.error().message;
}

TEST_F(OriginalFiles, TheRootIsNoPlace) { EXPECT_FALSE(read_original_files("//")); }

TEST_F(OriginalFiles, NoLinkLeadsThere) {
  std::filesystem::create_directory_symlink(place(), directory_ + "/other");
  EXPECT_FALSE(read_original_files(directory_ + "/other"));
  std::filesystem::remove(place() + "/_expiration");
  std::filesystem::create_directory_symlink(directory_, place() + "/_expiration");
  EXPECT_FALSE(read_original_files(place()));
}

TEST_F(OriginalFiles, NothingThere) {
  auto notes = read_original_files(directory_ + "/none");
  ASSERT_FALSE(notes);
  EXPECT_EQ(notes.error().code, Code::not_found);
  std::filesystem::remove(place() + "/_expiration");
  EXPECT_TRUE(read_original_files(place()));
}

}  // namespace
}  // namespace osb::cli
