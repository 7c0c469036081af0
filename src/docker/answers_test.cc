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

TEST(Answers, WhereAContainerIs) {
  auto at = [](std::string_view network) {
    return parse_container(
        R"({"Id":"c","Created":"2026-01-02T03:04:05Z","State":{"Status":"running"},)"
        R"("Config":{"Image":"team/app:1","Cmd":["sleep","9"],"User":"plain"},"NetworkSettings":)" +
        std::string(network) + "}");
  };
  auto two = at(R"({"Networks":{"mine":{"IPAddress":"10.7.0.3"},"bridge":{"IPAddress":"172.17.0.2"}},
      "Ports":{"44772/tcp":[{"HostIp":"::","HostPort":"40001"},{"HostIp":"127.0.0.1","HostPort":"40000"}],
               "8080/tcp":[{"HostPort":"40002"}],"53/udp":[{"HostPort":"53"}],"9000/tcp":null}})");
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_EQ(address_on(*two, "mine"), "10.7.0.3");
  EXPECT_EQ(address_on(*two, "bridge"), "172.17.0.2");
  EXPECT_TRUE(address_on(*two, "elsewhere")) << "any";
  EXPECT_EQ(two->published,
            (std::map<uint16_t, std::string>{{44772, "127.0.0.1:40000"}, {8080, "0.0.0.0:40002"}}));
  EXPECT_EQ(two->reference, "team/app:1");
  EXPECT_EQ(two->command, (std::vector<std::string>{"sleep", "9"}));
  EXPECT_EQ(two->user, "plain");
  EXPECT_EQ(two->created, "2026-01-02T03:04:05Z");
  for (const char* nowhere :
       {"{}", "null", "5", R"({"Networks":null,"Ports":[]})", R"({"Networks":{"none":{"IPAddress":""}}})",
        R"({"Networks":{"x":null},"Ports":{"80/tcp":[5,{}],"x/tcp":[{"HostPort":"80"}],"70000/tcp":[]}})",
        R"({"Networks":[],"Ports":{"80/tcp":[{"HostPort":"0"},{"HostPort":"x"}]}})"}) {
    auto container = at(nowhere);
    ASSERT_TRUE(container) << nowhere;
    EXPECT_FALSE(address_on(*container, "bridge")) << nowhere;
    EXPECT_TRUE(container->published.empty()) << nowhere;
  }
}

TEST(Answers, Logs) {
  auto piece = [](char stream, std::string_view text) {
    return std::string{stream, 0, 0, 0, 0, 0, 0, static_cast<char>(text.size())} + std::string(text);
  };
  EXPECT_EQ(*parse_logs(piece(1, "out\n") + piece(2, "bad\n") + piece(1, "")), "out\nbad\n");
  EXPECT_EQ(*parse_logs(""), "");
  for (const std::string& wrong : {std::string("plain text"), piece(1, "cut").substr(0, 9), piece(3, "x"),
                                   std::string(7, '\1'), std::string("\1\0\0\0\xff\xff\xff\xff", 8)})
    EXPECT_EQ(parse_logs(wrong).error().code, Code::corrupt) << wrong;
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
  auto finished = [](std::string_view when) {
    return parse_container(R"({"Id":"c","State":{"Status":"exited","FinishedAt":)" + std::string(when) + "}}")
        ->finished;
  };
  EXPECT_TRUE(finished(R"("2026-01-02T03:04:05.6Z")"));
  for (const char* never : {R"("0001-01-01T00:00:00Z")", R"("")", "null"}) EXPECT_FALSE(finished(never));
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
  auto both = parse_container_list(
      R"([{"Id":"a","Labels":{"a":"b"}},{"Id":7,"Labels":{}},{"Id":"","Labels":{}},{},{"Id":"b"}])");
  ASSERT_TRUE(both);
  ASSERT_EQ(both->size(), 1u);
  EXPECT_EQ((*both)[0].id, "a");
  EXPECT_EQ((*both)[0].labels.at("a"), "b");
  for (const char* wrong : {"", "{}", "null", "[", "1"}) EXPECT_FALSE(parse_container_list(wrong)) << wrong;
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
      R"([{"Id":"sha256:1","RepoTags":["a:1","docker.io/library/b:1","x.io/library/c:1"],"Labels":{"l":"v"}},{"Id":"sha256:2","RepoTags":["<none>:<none>"]},
          {"Id":"sha256:3","RepoTags":null,"Labels":null},{"RepoTags":[]}])");
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_THAT(*list, SizeIs(3));
  EXPECT_EQ((*list)[0].labels.at("l"), "v");
  EXPECT_EQ((*list)[0].tags, (std::vector<std::string>{"a:1", "b:1", "x.io/library/c:1"}));
  EXPECT_TRUE((*list)[1].tags.empty());
  for (const char* wrong : {"", "{}", "null", "[", "1"}) EXPECT_FALSE(parse_image_list(wrong)) << wrong;
}

TEST(Answers, Volumes) {
  auto volume = parse_volume(R"({"Name":"v","Driver":"local","Labels":{"a":"b"},"CreatedAt":"2026-01-01"})");
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->driver, "local");
  EXPECT_EQ(volume->labels.at("a"), "b");
  EXPECT_EQ(volume->mountpoint, "");
  auto kept = parse_volume(R"({"Name":"v","Mountpoint":"/m","Labels":null,"Options":null})");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->mountpoint, "/m");
  EXPECT_FALSE(kept->mounted_on_use);
  EXPECT_TRUE(parse_volume(R"({"Name":"v","Options":{"type":"nfs","device":":/x"}})")->mounted_on_use);
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

TEST(Answers, WhatIsMissing) {
  EXPECT_TRUE(says_no_image("No such image: small:1"));
  EXPECT_TRUE(says_no_image("small:1: image not known"));
  EXPECT_TRUE(
      says_no_image("image with reference small:1 was found but does not match the specified platform"));
  EXPECT_FALSE(says_no_image("network images not found"));
  EXPECT_FALSE(says_no_image("No such container: image"));
}

TEST(Answers, ALineOfAPull) {
  auto line = parse_pull_line(R"({"status":"Downloading","id":"a1"})");
  EXPECT_EQ(line->text, "a1: Downloading");
  EXPECT_EQ(line->error, "");
  line = parse_pull_line(R"({"errorDetail":{"message":"manifest unknown"},"error":"other"})");
  EXPECT_THAT(line->error, HasSubstr("manifest unknown"));
  EXPECT_FALSE(parse_pull_line("progress"));
  line = parse_pull_line(R"({"status":"Downloading","id":"a1","progressDetail":{"current":12,"total":34}})");
  EXPECT_EQ(line->current, 12u);
  EXPECT_EQ(line->total, 34u);
  for (const char* odd : {R"({})", R"({"current":-1,"total":-2})", R"({"current":1.5,"total":"2"})",
                          R"({"current":9223372036854775807,"total":18446744073709551615})", R"([1])", "7"}) {
    line = parse_pull_line(R"({"status":"Downloading","id":"a1","progressDetail":)" + std::string(odd) + "}");
    ASSERT_TRUE(line) << odd;
    EXPECT_EQ(line->current + line->total, 0u) << odd;
  }
}

TEST(Answers, Events) {
  using Kind = EngineEvent::Kind;
  auto event = parse_event(
      R"({"status":"pause","id":"c1","from":"app","Type":"container","Action":"pause","Actor":{"ID":"c1",)"
      R"("Attributes":{"image":"app","name":"x","opensandbox.io/owner":"me"}},"scope":"local","time":1})");
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->kind, Kind::paused);
  EXPECT_EQ(event->container, "c1");
  EXPECT_EQ(event->labels.at("opensandbox.io/owner"), "me");
  auto kind = [](std::string_view action, std::string_view type = "container") {
    return parse_event(R"({"Type":")" + std::string(type) + R"(","Action":")" + std::string(action) +
                       R"(","Actor":{"ID":"c"}})")
        ->kind;
  };
  EXPECT_EQ(kind("unpause"), Kind::unpaused);
  EXPECT_EQ(kind("die"), Kind::died);
  EXPECT_EQ(kind("destroy"), Kind::destroyed);
  for (const char* other : {"", "start", "PAUSE", "pause ", "exec_create: sh", "health_status: healthy"})
    EXPECT_EQ(kind(other), Kind::other) << other;
  EXPECT_EQ(kind("destroy", "volume"), Kind::other);
  EXPECT_EQ(parse_event("{}")->kind, Kind::other);
  for (const char* wrong :
       {"", "[]", "null", "1", "{", R"({"Type":"container","Action":"die"})",
        R"({"Type":"container","Action":"die","Actor":{}})", R"({"Action":"pause","Actor":{"ID":""}})",
        R"({"Action":7})", R"({"Action":"pause","Actor":"c"})", R"({"Action":"pause","Actor":{"ID":5}})",
        R"({"Action":"pause","Actor":{"ID":"c","Attributes":[]}})"})
    EXPECT_FALSE(parse_event(wrong)) << wrong;
}

}  // namespace
}  // namespace osb::docker
