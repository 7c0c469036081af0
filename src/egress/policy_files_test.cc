#include "egress/policy_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace osb::egress {
namespace {

constexpr char kHandle[] = "0198c1d2-0000-4000-8000-000000000001";

class PolicyFilesTest : public testing::Test {
 protected:
  PolicyFilesTest() {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    files_.emplace(*open_at(AT_FDCWD, path_, O_RDONLY | O_DIRECTORY));
  }
  ~PolicyFilesTest() override { std::filesystem::remove_all(path_); }
  std::string path_ = testing::TempDir() + "policy_files.XXXXXX";
  std::optional<PolicyFiles> files_;
};

TEST_F(PolicyFilesTest, AreThereAgain) {
  Policy policy =
      *parse_policy(R"({"defaultAction":"allow","egress":[{"action":"deny","target":"a.test"}]})");
  ASSERT_TRUE(files_->write(kHandle, {"the id", policy}));
  EXPECT_THAT(*files_->list(), testing::ElementsAre(kHandle));
  auto kept = files_->read(kHandle);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->id, "the id");
  EXPECT_EQ(to_json(kept->policy), to_json(policy));
  files_->remove(kHandle);
  files_->remove(kHandle);
  EXPECT_TRUE(files_->list()->empty());
}

TEST_F(PolicyFilesTest, WhatIsUnfinishedOrForeignIsNone) {
  ASSERT_TRUE(write_file(path_ + "/" + kHandle + ".new", "half", O_CREAT, 0600));
  ASSERT_TRUE(write_file(path_ + "/something", "else", O_CREAT, 0600));
  EXPECT_TRUE(files_->list()->empty());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/" + kHandle + ".new"));
}

TEST(KeptPolicy, WhatCannotBeReadIsNoPolicy) {
  for (const char* text :
       {"", "{}", "null", R"({"version":2,"id":"x","policy":{}})", R"({"version":1,"id":"x"})",
        R"({"version":1,"id":"x","policy":null})", R"({"version":1,"id":"x","policy":{"defaultAction":"x"}})",
        R"({"version":1,"id":"x","policy":[]})", R"({"version":1,"id":"x","policy":{)"}) {
    EXPECT_FALSE(parse_kept(text)) << text;
  }
}

}  // namespace
}  // namespace osb::egress
