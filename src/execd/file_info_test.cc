#include "execd/file_info.h"

#include <gtest/gtest.h>

namespace osb::execd {
namespace {

TEST(FileMode, digits) {
  EXPECT_EQ(mode_from_digits(644), 0644u);
  EXPECT_EQ(mode_from_digits(755), 0755u);
  EXPECT_EQ(mode_from_digits(7), 07u);
  EXPECT_EQ(mode_from_digits(4755), 0755u) << "only permission bits";
  EXPECT_FALSE(mode_from_digits(689));
  EXPECT_FALSE(mode_from_digits(8644));
  EXPECT_FALSE(mode_from_digits(-1));
  EXPECT_EQ(digits_from_mode(0100644), 644);
  EXPECT_EQ(digits_from_mode(0104755), 755);
  EXPECT_EQ(digits_from_mode(0), 0);
}

TEST(FileInfo, bytes) {
  struct stat info{};
  info.st_mode = S_IFREG | 0640;
  info.st_size = 12;
  info.st_uid = 0;
  info.st_gid = 4242;
  info.st_mtim = {1'700'000'000, 123'456'789};
  info.st_ctim = {1'700'000'000, 7};
  std::string out;
  append_file_info(out, "/a\"b", info, Users::parse("root:x:0:0::/:\n", ""));
  EXPECT_EQ(out,
            "{\"path\":\"/"
            "a\\\"b\",\"type\":\"file\",\"size\":12,\"modified_at\":\"2023-11-14T22:13:20.123456789Z\","
            "\"created_at\":\"2023-11-14T22:13:20.000000007Z\",\"owner\":\"root\",\"group\":\"4242\","
            "\"mode\":640}");
  info.st_mode = S_IFIFO;
  out.clear();
  append_file_info(out, "/p", info, Users());
  EXPECT_NE(out.find("\"type\":\"other\""), out.npos);
}

}  // namespace
}  // namespace osb::execd
