#include "runtime/native/changes.h"

#include <gmock/gmock.h>

namespace osb::runtime {
namespace {

using Kind = sandbox::FileChange::Kind;

TEST(Changes, AreRead) {
  auto read = parse_changes("A /new\nM /etc/a b\nD /x\\012\\134y\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (std::vector<sandbox::FileChange>{
                       {Kind::added, "/new"}, {Kind::modified, "/etc/a b"}, {Kind::deleted, "/x\n\\y"}}));
  EXPECT_TRUE(parse_changes("")->empty());
}

TEST(Changes, NonsenseIsRefused) {
  for (const char* text : {"A /x", "\n", "A\n", "A  /x\n", "X /x\n", "A x\n", "A /\\\n", "A /\\12\n",
                           "A /\\128\n", "A /\\000\n", "A /\\777\n", "A /x\n\n"}) {
    EXPECT_FALSE(parse_changes(text)) << text;
  }
}

}  // namespace
}  // namespace osb::runtime
