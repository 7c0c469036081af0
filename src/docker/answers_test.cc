#include "docker/answers.h"

#include <gmock/gmock.h>

namespace osb::docker {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(Answers, Versions) {
  EXPECT_EQ(parse_api_version("1.41"), (ApiVersion{1, 41}));
  EXPECT_LT(*parse_api_version("1.9"), *parse_api_version("1.41"));
  for (const char* wrong : {"", "1", "1.", ".41", "1.41.2", "v1.41", "1.-4", "1.99999", "1. 41"})
    EXPECT_FALSE(parse_api_version(wrong)) << wrong;
  auto version = parse_version(R"({"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"})");
  ASSERT_TRUE(version);
  EXPECT_EQ(version->newest, (ApiVersion{1, 41}));
  EXPECT_EQ(version->oldest, (ApiVersion{1, 12}));
  for (const char* wrong : {"", "[]", "{}", R"({"ApiVersion":1})", R"({"ApiVersion":"x"})"})
    EXPECT_EQ(parse_version(wrong).error().code, Code::corrupt) << wrong;
}

TEST(Answers, Containers) {
  auto container = parse_container(
      R"({"Id":"c1","State":{"Status":"exited","Running":false,"ExitCode":137,"OOMKilled":true},
          "Config":{"Labels":{"opensandbox.io/owner":"o"}}})");
  ASSERT_TRUE(container) << container.error().message;
  EXPECT_EQ(container->exit_code, 137);
  EXPECT_TRUE(container->out_of_memory);
  EXPECT_EQ(container->labels.at("opensandbox.io/owner"), "o");
  EXPECT_TRUE(parse_container(R"({"Id":"c","State":{"Status":"running"},"Config":{"Labels":null}})"));
  for (const char* wrong : {"", "null", "[]", R"({"Id":"c"})", R"({"Id":"","State":{"Status":"running"}})",
                            R"({"State":{"Status":"running"}})",
                            R"({"Id":"c","State":{"Status":"running"},"Config":{"Labels":[]}})",
                            R"({"Id":"c","State":"running"})"})
    EXPECT_EQ(parse_container(wrong).error().code, Code::corrupt) << wrong;
}

TEST(Answers, Lists) {
  auto list = parse_labels_of_list(R"([{"Labels":{"a":"b"}},{"Labels":null},{"Labels":7},{}])");
  ASSERT_TRUE(list);
  EXPECT_THAT(*list, SizeIs(1));
  for (const char* wrong : {"", "{}", "null", "[", "1"}) EXPECT_FALSE(parse_labels_of_list(wrong)) << wrong;
}

TEST(Answers, Others) {
  EXPECT_EQ(parse_image(R"({"Id":"sha256:1","Os":"linux","Architecture":"amd64"})")->platform, "linux/amd64");
  EXPECT_FALSE(parse_image(R"({"Os":"linux"})"));
  EXPECT_EQ(*parse_created(R"({"Id":"c","Warnings":[]})"), "c");
  EXPECT_FALSE(parse_created(R"({"Id":""})"));
  EXPECT_EQ(*parse_wait(R"({"StatusCode":137,"Error":null})"), 137);
  EXPECT_FALSE(parse_wait("{}"));
}

TEST(Answers, WhatGoesIntoMessagesIsShortAndOneLine) {
  EXPECT_EQ(parse_error(R"({"message":"No such image"})", 404), "No such image");
  EXPECT_EQ(parse_error("<html>", 502), "status 502");
  std::string said = parse_error(R"({"message":")" + std::string(5000, 'x') + R"(\nline"})", 500);
  EXPECT_LT(said.size(), 1000u);
  EXPECT_EQ(said.find('\n'), said.npos);
}

TEST(Answers, ALineOfAPull) {
  auto line = parse_pull_line(R"({"status":"Downloading","id":"a1"})");
  EXPECT_EQ(line->text, "a1: Downloading");
  EXPECT_EQ(line->error, "");
  line = parse_pull_line(R"({"errorDetail":{"message":"manifest unknown"},"error":"other"})");
  EXPECT_THAT(line->error, HasSubstr("manifest unknown"));
  EXPECT_FALSE(parse_pull_line("progress"));
}

}  // namespace
}  // namespace osb::docker
