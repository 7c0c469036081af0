#include "runtime/native/changes.h"

#include <gmock/gmock.h>

namespace osb::runtime {
namespace {

using Kind = sandbox::FileChange::Kind;

TEST(Changes, AreRead) {
  auto read = parse_changes("A /new\nM /etc/a b\nD /x\\012\\134y\n.\n");
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, (std::vector<sandbox::FileChange>{
                       {Kind::added, "/new"}, {Kind::modified, "/etc/a b"}, {Kind::deleted, "/x\n\\y"}}));
  EXPECT_TRUE(parse_changes(".\n")->empty());
}

TEST(Changes, AListThatBreaksOffIsNone) {
  for (const char* text : {"", "A /x\n", "A /x\n.", ".\nA /x\n", ".\n.\n"})
    EXPECT_FALSE(parse_changes(text)) << text;
}

TEST(Changes, AnErrorIsToldAsItIs) {
  auto last = "! " + std::to_string(static_cast<int>(Code::wrong_state)) + " its disk\\012is away\n";
  for (const std::string& text : {last, "A /x\n" + last}) {
    auto read = parse_changes(text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::wrong_state);
    EXPECT_EQ(read.error().message, "its disk\nis away");
  }
  for (const char* text :
       {"! \n", "! x\n", "! x y\n", "! 250 y\n", "! -1 y\n", "! 1 y\nA /x\n", "! 1 \\9\n"}) {
    auto read = parse_changes(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Code::corrupt) << text;
  }
}

TEST(Changes, NonsenseIsRefused) {
  for (const char* text : {"A /x", "\n", "A\n", "A  /x\n", "X /x\n", "A x\n", "A /\\\n", "A /\\12\n",
                           "A /\\128\n", "A /\\000\n", "A /\\777\n", "A /x\n\n"}) {
    EXPECT_FALSE(parse_changes(text)) << text;
    EXPECT_FALSE(parse_changes(std::string(text) + ".\n")) << text;
  }
}

}  // namespace
}  // namespace osb::runtime
