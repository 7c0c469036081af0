#include "sys/mount.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <iterator>
#include <string>

namespace osb::sys {
namespace {

TEST(OverlayOptionsText, JoinsLayersAndKeepsTheRest) {
  const MountOption options[] = {{"lowerdir+", "lowers/0"}, {"lowerdir+", "lowers/1"},
                                 {"lowerdir+", "lowers/2"}, {"upperdir", "s/id/upper"},
                                 {"workdir", "s/id/work"},  {"volatile", nullptr},
                                 {"index", "off"}};
  char text[256];
  ASSERT_EQ(overlay_options_text(options, std::size(options), text, sizeof text), 0);
  EXPECT_STREQ(
      text, "lowerdir=lowers/0:lowers/1:lowers/2,upperdir=s/id/upper,workdir=s/id/work,volatile,index=off");
}

TEST(OverlayOptionsText, IsNeverCutOff) {
  const MountOption options[] = {{"lowerdir+", "ab"}, {"lowerdir+", "cd"}};
  std::string wanted = "lowerdir=ab:cd";
  char text[32];
  EXPECT_EQ(overlay_options_text(options, 2, text, wanted.size() + 1), 0);
  EXPECT_EQ(text, wanted);
  for (size_t size = 0; size <= wanted.size(); ++size)
    EXPECT_EQ(overlay_options_text(options, 2, text, size), -E2BIG) << size;
}

}  // namespace
}  // namespace osb::sys
