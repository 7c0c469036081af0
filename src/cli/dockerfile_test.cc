#include "cli/dockerfile.h"

#include <gtest/gtest.h>

#include "cli/build_stage.h"

namespace osb::cli {
namespace {

using Kind = Instruction::Kind;

Lookup variables(std::map<std::string, std::string> known) {
  return [known = std::move(known)](std::string_view name) -> std::optional<std::string> {
    auto found = known.find(std::string(name));
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(Dockerfile, StagesAndInstructions) {
  auto file = parse_dockerfile(
      "# syntax=docker/dockerfile:1.7\n"
      "ARG V=1\n"
      "from debian:${V} As Build\r\n"
      "# a comment\n"
      "RUN make \\\n"
      "  # inside\n"
      "\n"
      "  all\n"
      "CMD [\"a\", \"b c\"]\n"
      "FROM build\n"
      "COPY --from=build --chown=1:2 a \"b c\" /d/\n"
      "ENV A=1 B='two words'\n"
      "ENV OLD  form  here\n"
      "ARG X Y=2\n");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->arguments.size(), 1U);
  ASSERT_EQ(file->stages.size(), 2U);
  const Stage& first = file->stages[0];
  EXPECT_EQ(first.base, "debian:${V}");
  EXPECT_EQ(first.name, "build");
  ASSERT_EQ(first.instructions.size(), 2U);
  EXPECT_EQ(first.instructions[0].line, 5);
  EXPECT_FALSE(first.instructions[0].is_list);
  EXPECT_EQ(first.instructions[0].words, std::vector<std::string>{"make   all"});
  EXPECT_EQ(first.instructions[1].words, (std::vector<std::string>{"a", "b c"}));
  const auto& second = file->stages[1].instructions;
  EXPECT_EQ(second[0].flags.at("chown"), "1:2");
  EXPECT_EQ(second[0].words, (std::vector<std::string>{"a", "\"b c\"", "/d/"}));
  EXPECT_EQ(second[1].pairs[1].second, "'two words'");
  EXPECT_EQ(second[2].pairs[0].second, "form  here");
  EXPECT_FALSE(second[3].pairs[0].second);
  EXPECT_EQ(second[3].pairs[1].second, "2");
}

TEST(Dockerfile, AnotherEscape) {
  auto file = parse_dockerfile("# escape=`\nFROM x\nRUN a `\n b\\\nUSER u\n");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->escape, '`');
  ASSERT_EQ(file->stages[0].instructions.size(), 2U);
  EXPECT_EQ(file->stages[0].instructions[0].words[0], "a  b\\");
  EXPECT_EQ(file->stages[0].instructions[1].line, 5);
}

// What is not known is refused by its name, with its line.
TEST(Dockerfile, Refused) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "no FROM"},
      {"# x\n", "no FROM"},
      {"ARG A\n", "no FROM"},
      {"RUN x\n", "line 1: RUN before the first FROM"},
      {"FROM\n", "line 1: FROM needs something"},
      {"FROM a b\n", "line 1: FROM is written"},
      {"FROM a AS\n", "line 1: FROM is written"},
      {"FROM a AS 1\n", "line 1: a stage's name"},
      {"FROM a AS x\nFROM b AS X\n", "line 2: another stage"},
      {"FROM scratch\n", "line 1: FROM scratch is not supported"},
      {"FROM --platform=x a\n", "line 1: FROM --platform is not supported"},
      {"FROM a\nRUN --mount=x y\n", "line 2: RUN --mount is not supported"},
      {"FROM a\nCOPY --parents a b\n", "line 2: COPY --parents is not supported"},
      {"FROM a\nADD --from=x a b\n", "line 2: ADD --from is not supported"},
      {"FROM a\nCOPY --chown= a b\n", "line 2: COPY --chown needs a value"},
      {"FROM a\nCOPY --chown a b\n", "line 2: COPY --chown needs a value"},
      {"FROM a\nCOPY --from=x --from=y a b\n", "line 2: COPY --from twice"},
      {"FROM a\nCOPY a\n", "line 2: COPY needs a source and a target"},
      {"FROM a\nCOPY [\"\", \"b\"]\n", "line 2: a path is empty"},
      {"FROM a\nCOPY <<EOF /x\nEOF\n", "line 2: here-documents"},
      {"FROM a\nRUN cat <<-'EOF'\nEOF\n", "line 2: here-documents"},
      {"FROM a\nRUN cat 3<<EOF\nEOF\n", "line 2: here-documents"},
      {"FROM a\nADD http://x /x\n", "line 2: ADD of a URL"},
      {"FROM a\nADD git@x:y /x\n", "line 2: ADD of a URL"},
      {"FROM a\nENV A\n", "line 2: ENV needs a value"},
      {"FROM a\nENV A=1 B\n", "line 2: ENV is written"},
      {"FROM a\nENV =1\n", "line 2: ENV without a name"},
      {"FROM a\nENV A='x\n", "line 2: a quote does not end"},
      {"FROM a\nUSER a b\n", "line 2: USER takes one word"},
      {"FROM a\nSHELL sh -c\n", "line 2: SHELL is written as a list"},
      {"FROM a\nSHELL []\n", "line 2: SHELL needs at least one word"},
      {"FROM a\nVOLUME x\n", "line 2: VOLUME is not supported"},
      {"FROM a\nMAINTAINER x\n", "line 2: MAINTAINER is not supported"},
      {"FROM a\nSTOPSIGNAL 9\n", "line 2: STOPSIGNAL is not supported"},
      {"FROM a\nEOF\n", "line 2: EOF is no instruction"},
      {"# escape=x\nFROM a\n", "line 1: escape must be"},
      {"# syntax=somebody/else\nFROM a\n", "line 1: this syntax is not supported"},
      {std::string("FROM a\0b\n", 9), "NUL"},
      {"FROM a\nRUN " + std::string(70000, 'x') + "\n", "line 2: the instruction is longer"},
      {std::string(kMaxDockerfile + 1, '\n'), "larger than 1 MiB"},
  };
  for (const auto& [text, words] : cases) {
    auto file = parse_dockerfile(text);
    ASSERT_FALSE(file) << text.substr(0, 80);
    EXPECT_NE(file.error().message.find(words), std::string::npos) << file.error().message << " / " << words;
  }
  std::string many = "FROM a\n", stages;
  for (int i = 0; i < 1001; ++i) many += "RUN x\n";
  for (int i = 0; i < 65; ++i) stages += "FROM a\n";
  EXPECT_FALSE(parse_dockerfile(many));
  EXPECT_FALSE(parse_dockerfile(stages));
}

TEST(Dockerfile, WhatIsNoHereDocument) {
  for (const char* text : {"FROM a\nRUN echo $((1<<2))\n", "FROM a\nRUN cat <<<word\n",
                           "FROM a\nCMD [\"sh\", \"-c\", \"cat <<X\"]\n", "FROM a\nRUN a << 1\n"})
    EXPECT_TRUE(parse_dockerfile(text)) << text;
}

TEST(Dockerfile, Expansion) {
  auto lookup = variables({{"A", "one"}, {"EMPTY", ""}, {"B", "x y"}});
  const std::pair<const char*, const char*> cases[] = {
      {"plain", "plain"},
      {"$A-${A}", "one-one"},
      {"$NONE.", "."},
      {"${NONE:-other}", "other"},
      {"${EMPTY:-other}", "other"},
      {"${A:-other}", "one"},
      {"${A:+set}${NONE:+not}", "set"},
      {"${NONE:-${A}}", "one"},
      {"\"$B\"", "x y"},
      {"'$A'", "$A"},
      {"\\$A", "$A"},
      {"\"a\\\"b\\c\"", "a\"b\\c"},
      {"a\\ b", "a b"},
      {"$", "$"},
      {"$1", "$1"},
      {"\"it's\"", "it's"},
      {"", ""},
  };
  for (const auto& [word, wanted] : cases) {
    auto got = expand(word, '\\', lookup);
    ASSERT_TRUE(got) << word << ": " << got.error().message;
    EXPECT_EQ(*got, wanted) << word;
  }
  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "${N:-";
  for (const std::string& word : {std::string("${A"), std::string("${}"), std::string("${A#x}"),
                                  std::string("${A:?x}"), std::string("'x"), std::string("${A:-'x}"), deep})
    EXPECT_FALSE(expand(word, '\\', lookup)) << word;
  std::string doubling(5000, 'x'), twenty;
  for (int i = 0; i < 20; ++i) twenty += "$BIG";
  auto big = expand(twenty, '\\', variables({{"BIG", doubling}}));
  ASSERT_FALSE(big);
  EXPECT_EQ(big.error().code, Code::too_large);
}

BuildStage after(const std::string& text, BuildArguments arguments = {}) {
  auto file = parse_dockerfile("FROM x\n" + text);
  EXPECT_TRUE(file) << file.error().message;
  BuildStage stage;
  for (const Instruction& one : file->stages[0].instructions) {
    auto done = apply(one, '\\', arguments, stage);
    EXPECT_TRUE(done) << done.error().message;
  }
  return stage;
}

TEST(BuildStage, VariablesSeeWhatWasThereBefore) {
  BuildStage stage = after("ENV A=1\nENV A=2 B=$A\nENV PATH=$PATH:/x\nWORKDIR /a\nWORKDIR b/../c\n");
  EXPECT_EQ(stage.find("A"), "2");
  EXPECT_EQ(stage.find("B"), "1");
  EXPECT_TRUE(stage.find("PATH")->ends_with("/bin:/x"));
  EXPECT_EQ(stage.workdir, "/a/c");
}

TEST(BuildStage, Arguments) {
  BuildArguments arguments{.given = {{"GIVEN", "g"}}, .global = {{"GLOBAL", "o"}}};
  BuildStage stage = after("ARG GIVEN=x GLOBAL\nARG OWN=$GIVEN-y NOTHING\nENV OWN=env\n", arguments);
  EXPECT_EQ(stage.find("GIVEN"), "g");
  EXPECT_EQ(stage.find("GLOBAL"), "o");
  EXPECT_EQ(stage.find("OWN"), "env") << "ENV wins";
  EXPECT_FALSE(stage.find("NOTHING"));
}

TEST(BuildStage, AnEntrypointTakesTheOldArgumentsAway) {
  EXPECT_EQ(after("CMD a\nENTRYPOINT [\"b\"]\n").cmd, (std::vector<std::string>{"/bin/sh", "-c", "a"}));
  EXPECT_EQ(after("ENTRYPOINT [\"b\"]\n").cmd, std::vector<std::string>());
}

}  // namespace
}  // namespace osb::cli
