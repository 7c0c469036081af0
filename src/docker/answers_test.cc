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

TEST(Answers, Runtimes) {
  auto names = parse_runtimes(R"({"Runtimes":{"runc":{"path":"runc"},"runsc":{}},"ID":"x"})");
  ASSERT_TRUE(names);
  EXPECT_EQ(*names, (std::vector<std::string>{"runc", "runsc"}));
  EXPECT_EQ(parse_runtimes(R"({"Runtimes":{}})")->size(), 0u);
  for (const char* text :
       {"", "[]", "{}", "1", R"({"Runtimes":[]})", R"({"Runtimes":"runc"})", R"({"Runtimes":null})"})
    EXPECT_FALSE(parse_runtimes(text)) << text;
}

TEST(Answers, Containers) {
  auto container = parse_container(
      R"({"Id":"c1","State":{"Status":"exited","Running":false,"ExitCode":137,"OOMKilled":true},
          "Config":{"Labels":{"opensandbox.io/owner":"o"}}})");
  ASSERT_TRUE(container) << container.error().message;
  EXPECT_EQ(container->exit_code, 137);
  EXPECT_TRUE(container->out_of_memory);
  EXPECT_EQ(container->labels.at("opensandbox.io/owner"), "o");
  EXPECT_EQ(container->pid, 0);
  EXPECT_TRUE(parse_container(R"({"Id":"c","State":{"Status":"running"},"Config":{"Labels":null}})"));
  EXPECT_EQ(parse_container(R"({"Id":"c","State":{"Status":"running","Pid":77}})")->pid, 77);
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

TEST(Answers, ListsOfImages) {
  auto list = parse_image_list(
      R"([{"Id":"sha256:1","RepoTags":["a:1"],"Labels":{"l":"v"}},{"Id":"sha256:2","RepoTags":["<none>:<none>"]},
          {"Id":"sha256:3","RepoTags":null,"Labels":null},{"RepoTags":[]}])");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_THAT(*list, SizeIs(3));
  EXPECT_EQ((*list)[0].labels.at("l"), "v");
  EXPECT_TRUE((*list)[1].tags.empty());
  for (const char* wrong : {"", "{}", "null", "[", "1"}) EXPECT_FALSE(parse_image_list(wrong)) << wrong;
}

TEST(Answers, Volumes) {
  auto volume = parse_volume(R"({"Name":"v","Driver":"local","Labels":{"a":"b"},"CreatedAt":"2026-01-01"})");
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->driver, "local");
  EXPECT_EQ(volume->labels.at("a"), "b");
  for (const char* wrong : {"", "[]", "{}", R"({"Name":""})", R"({"Name":1})"})
    EXPECT_EQ(parse_volume(wrong).error().code, Code::corrupt) << wrong;
  EXPECT_THAT(*parse_volume_list(R"({"Volumes":[{"Name":"v"},{"Driver":"local"}],"Warnings":null})"),
              SizeIs(1));
  EXPECT_THAT(*parse_volume_list(R"({"Volumes":null})"), SizeIs(0));
  for (const char* wrong : {"", "[]", "null"}) EXPECT_FALSE(parse_volume_list(wrong)) << wrong;
}

TEST(Answers, Changes) {
  using Kind = sandbox::FileChange::Kind;
  auto changes = parse_changes(R"([{"Path":"/a","Kind":0},{"Path":"/b","Kind":1},{"Path":"/c","Kind":2}])");
  ASSERT_TRUE(changes);
  ASSERT_THAT(*changes, SizeIs(3));
  EXPECT_EQ((*changes)[0].kind, Kind::modified);
  EXPECT_EQ((*changes)[1].kind, Kind::added);
  EXPECT_EQ((*changes)[2].kind, Kind::deleted);
  EXPECT_THAT(*parse_changes("null"), SizeIs(0)) << "what an engine says of nothing";
  for (const char* wrong : {"", "{}", "[1]", R"([{"Path":"a","Kind":0}])", R"([{"Path":"/a","Kind":3}])",
                            R"([{"Path":"/a"}])", R"([{"Kind":1}])"})
    EXPECT_EQ(parse_changes(wrong).error().code, Code::corrupt) << wrong;
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
