#include "cli/line_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::cli {
namespace {

using ::testing::HasSubstr;
using What = LineEditor::Step::What;

struct Typist {
  LineEditor editor;
  std::string seen;
  What last = What::nothing;
  explicit Typist(size_t columns = 80) { seen = editor.begin("> ", columns); }
  std::string type(std::string_view keys) {
    for (char c : keys) {
      auto step = editor.feed(c);
      seen += step.shown;
      last = step.what;
      if (last == What::line) return editor.line();
    }
    return editor.line();
  }
};

TEST(LineEditor, KeysMoveAndDelete) {
  for (auto [keys, line] : {std::pair<const char*, const char*>{"abc\n", "abc"},
                            {"abc\x1b[DX\n", "abXc"},
                            {"abc\x1b[D\x1b[D\x1b[CX\n", "abXc"},
                            {"abc\x01X\x05Y\n", "XabcY"},
                            {"abc\x7f\x7f\n", "a"},
                            {"\x7f\x08"
                             "a\n",
                             "a"},
                            {"abc\x01\x04\n", "bc"},
                            {"abc\x01\x1b[3~\n", "bc"},
                            {"abc def\x17X\n", "abc X"},
                            {"abc def\x15X\n", "X"},
                            {"abc\x02\x0b\n", "ab"},
                            {"abc def\x1b"
                             "bX\n",
                             "abc Xdef"},
                            {"abc def\x01\x1b"
                             "fX\n",
                             "abcX def"},
                            {"abc def\x1b[1;5DX\n", "abc Xdef"},
                            {"abc\x1b[HX\x1b[FY\x1bOHZ\n", "ZXabcY"},
                            {"\xc3\xa4\xe4\xb8\xad\x7f\n", "\xc3\xa4"},
                            {"\xc3\xa4\x1b[DX\n", "X\xc3\xa4"}})
    EXPECT_EQ(Typist().type(keys), line) << keys;
}

TEST(LineEditor, WhatIsNoKeyIsDropped) {
  for (auto [keys, line] : {std::pair<const char*, const char*>{"a\x1b[99;99Zb\n", "ab"},
                            {"a\x1b[12345678901234567890b\n", "a567890b"},
                            {"a\x80\xbf"
                             "b\n",
                             "ab"},
                            {"a\xc3"
                             "b\n",
                             "ab"},
                            {"a\x1bq\x00"
                             "b\n",
                             "a"},
                            {"a\x1d\x1e"
                             "b\n",
                             "ab"}})
    EXPECT_EQ(Typist().type(keys), line) << keys;
}

TEST(LineEditor, TheEndIsAnEmptyLine) {
  Typist typist;
  typist.type("\x04");
  EXPECT_EQ(typist.last, What::end);
  Typist other;
  other.type("a\x04");
  EXPECT_EQ(other.last, What::nothing);
}

TEST(LineEditor, EarlierLinesComeBackAndTheNewOneIsKept) {
  Typist typist;
  for (const char* line : {"one", "two", "two", "  "}) typist.editor.remember(line);
  typist.editor.begin("> ", 80);
  EXPECT_EQ(typist.type("new\x1b[A"), "two");
  EXPECT_EQ(typist.type("\x1b[A"), "one");
  EXPECT_EQ(typist.type("\x1b[A"), "one");
  EXPECT_EQ(typist.type("\x1b[B\x1b[B"), "new");
  EXPECT_EQ(typist.type("\x1b[B"), "new");
  for (size_t i = 0; i < LineEditor::kMaxHistory + 5; ++i) typist.editor.remember(std::to_string(i));
  EXPECT_EQ(typist.editor.history().size(), LineEditor::kMaxHistory);
}

TEST(LineEditor, WhatIsTypedAtTheEndIsAllThatIsWritten) {
  Typist typist;
  typist.type("print(1)\n");
  EXPECT_EQ(typist.seen, "> print(1)\r\n");
}

TEST(LineEditor, TabAsksAndTheAnswerIsPutIn) {
  Typist typist;
  typist.type("os.get\t");
  EXPECT_EQ(typist.last, What::complete);
  EXPECT_EQ(typist.editor.before_cursor(), "os.get");
  typist.editor.insert("cwd");
  EXPECT_EQ(typist.editor.line(), "os.getcwd");
  EXPECT_THAT(typist.editor.list({"a", "b"}), HasSubstr("a  b"));
}

TEST(LineEditor, ALineOfSeveralRowsIsShownAnewFromItsPrompt) {
  Typist typist(10);
  typist.type("abcdefghijklmnopq");
  typist.seen.clear();
  typist.type("\x7f");
  EXPECT_THAT(typist.seen, ::testing::StartsWith("\x1b[1A\r\x1b[J> abc"));
}

TEST(LineEditor, ALineHasABound) {
  Typist typist;
  typist.type(std::string(LineEditor::kMaxLine + 10, 'x'));
  EXPECT_EQ(typist.editor.line().size(), LineEditor::kMaxLine);
}

TEST(WidthOf, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(width_of("abc"), 3u);
  EXPECT_EQ(width_of("\xc3\xa4"), 1u);
  EXPECT_EQ(width_of("\xe4\xb8\xad\xe6\x96\x87"), 4u);
  EXPECT_EQ(width_of("\xe4"), 1u);
}

}  // namespace
}  // namespace osb::cli
