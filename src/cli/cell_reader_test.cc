#include "cli/cell_reader.h"

#include <gmock/gmock.h>

#include <vector>

#include "base/strings.h"

namespace osb::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> cells(std::string language, std::string_view text) {
  CellReader reader(std::move(language));
  std::vector<std::string> out;
  for (std::string_view line : split(text, '\n')) {
    if (auto cell = reader.feed(line)) out.push_back(*cell);
  }
  if (auto rest = reader.finish()) out.push_back("unfinished: " + *rest);
  return out;
}

TEST(CellReader, CompleteLinesAreCells) {
  EXPECT_THAT(cells("python", "x = 1\n\nx"), ElementsAre("x = 1\n", "x\n"));
  EXPECT_THAT(cells("javascript", "let a = 'it'; // isn't (open\na"),
              ElementsAre("let a = 'it'; // isn't (open\n", "a\n"));
  EXPECT_THAT(cells("python", "print('(')  # ("), ElementsAre("print('(')  # (\n"));
  EXPECT_THAT(cells("python", "\n  \n"), IsEmpty());
}

TEST(CellReader, BlocksEndWithABlankLine) {
  EXPECT_THAT(cells("python", "for i in a:\n  f(i)\n  g(i)\n\nh()"),
              ElementsAre("for i in a:\n  f(i)\n  g(i)\n", "h()\n"));
  EXPECT_THAT(cells("python", "if a:  # why\n  b\nelse:\n  c\n"),
              ElementsAre("if a:  # why\n  b\nelse:\n  c\n"));
  EXPECT_THAT(cells("python", "@cache\ndef f():\n  pass\n"), ElementsAre("@cache\ndef f():\n  pass\n"));
  EXPECT_THAT(cells("bash", "for i in 1 2; do\n  echo $i\ndone\n\nls"),
              ElementsAre("for i in 1 2; do\n  echo $i\ndone\n", "ls\n"));
  EXPECT_THAT(cells("python", "def f():\n  pass"), ElementsAre("unfinished: def f():\n  pass\n"));
}

TEST(CellReader, WhatIsOpenGoesOn) {
  EXPECT_THAT(cells("python", "f(1,\n\n  2)\ng()"), ElementsAre("f(1,\n\n  2)\n", "g()\n"));
  EXPECT_THAT(cells("javascript", "function f() {\n\n  return `a\n(`\n}\nf()"),
              ElementsAre("function f() {\n\n  return `a\n(`\n}\n", "f()\n"));
  EXPECT_THAT(cells("python", "a = '''x\n\n(y'''\nb"), ElementsAre("a = '''x\n\n(y'''\n", "b\n"));
  EXPECT_THAT(cells("python", "a = 1 + \\\n  2\nb"), ElementsAre("a = 1 + \\\n  2\n", "b\n"));
  EXPECT_THAT(cells("bash", "echo 'a\nb'\nls"), ElementsAre("echo 'a\nb'\n", "ls\n"));
  EXPECT_THAT(cells("go", "x := []int{\n1,\n}\nx"), ElementsAre("x := []int{\n1,\n}\n", "x\n"));
}

TEST(CellReader, WrongInputDoesNotHang) {
  EXPECT_THAT(cells("python", "a = 'open\nb)\n]"), ElementsAre("a = 'open\n", "b)\n", "]\n"));
}

TEST(CellReader, ResetForgets) {
  CellReader reader("python");
  EXPECT_FALSE(reader.feed("f("));
  EXPECT_TRUE(reader.within());
  reader.reset();
  EXPECT_FALSE(reader.within());
  EXPECT_EQ(reader.feed("x"), "x\n");
}

}  // namespace
}  // namespace osb::cli
