#include "execd/users.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::execd {
namespace {

using testing::ElementsAre;

Users sample() {
  return Users::parse(
      "root:x:0:0:root:/root:/bin/bash\n"
      "toor:x:0:0::/root2:/bin/sh\n"
      "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
      "app:x:1000:1000::/home/app\n"
      "short:x\n"
      "bad:x:abc:1:::\n"
      "negative:x:-1:1:::\n"
      "unchanged:x:4294967295:1:::\n"
      "staying:x:1:4294967295:::\n"
      ":x:5:5:::\n"
      "big:x:4294967294:7::/:\n",
      "root:x:0:\nnogroup:x:65534:\napp:x:1000:app\ndocker:x:999:other, "
      "app,\nvideo:x:44:app,nobody\nbad:x:y:app\n");
}

TEST(Users, lookups) {
  Users users = sample();
  EXPECT_EQ(users.find("root")->home, "/root");
  EXPECT_EQ(users.find(uid_t{0})->name, "root") << "the first entry of an id names it";
  EXPECT_EQ(users.find("toor")->uid, 0u);
  EXPECT_EQ(users.find("app")->home, "/home/app");
  EXPECT_EQ(users.find("big")->uid, 4294967294u);
  EXPECT_EQ(users.find_group("nogroup"), 65534u);
  EXPECT_EQ(users.user_name(65534), "nobody");
  EXPECT_EQ(users.user_name(4242), "4242");
  EXPECT_EQ(users.group_name(44), "video");
  EXPECT_EQ(users.group_name(4242), "4242");
}

TEST(Users, broken_lines_are_skipped) {
  Users users = sample();
  EXPECT_EQ(users.find("short"), nullptr);
  EXPECT_EQ(users.find("bad"), nullptr);
  EXPECT_EQ(users.find("negative"), nullptr);
  EXPECT_EQ(users.find("unchanged"), nullptr);
  EXPECT_EQ(users.find("staying"), nullptr);
  EXPECT_EQ(users.find(""), nullptr);
  EXPECT_FALSE(users.find_group("bad"));
}

TEST(Users, supplementary_groups) {
  Users users = sample();
  EXPECT_THAT(users.groups_of(*users.find("app")), ElementsAre(999, 44));
  EXPECT_THAT(users.groups_of(*users.find("root")), ElementsAre());
}

TEST(Users, names_or_numbers) {
  Users users = sample();
  EXPECT_EQ(resolve_user(users, "app"), 1000u);
  EXPECT_EQ(resolve_user(users, "77"), 77u);
  EXPECT_FALSE(resolve_user(users, "nope"));
  EXPECT_FALSE(resolve_user(users, "-1"));
  EXPECT_FALSE(resolve_user(users, "4294967295")) << "no id: the kernel would change nothing";
  EXPECT_FALSE(resolve_group(users, "4294967295"));
  EXPECT_FALSE(resolve_user(users, "4294967296"));
  EXPECT_EQ(resolve_group(users, "video"), 44u);
  EXPECT_FALSE(resolve_group(users, ""));
}

}  // namespace
}  // namespace osb::execd
