#include "image/pull_reference.h"

#include <gmock/gmock.h>

namespace osb::image {
namespace {

std::string name_of(std::string_view asked, std::string_view standard = kDockerHub) {
  auto parsed = parse_pull_reference(asked, standard);
  return parsed ? parsed->name() : "refused";
}

const std::string kDigest(64, 'a');

TEST(PullReference, NamesMeanWhatPeopleExpect) {
  struct Case {
    std::string asked, name;
  };
  for (const Case& c : std::vector<Case>{
           {"python", "docker.io/library/python:latest"},
           {"python:3.12", "docker.io/library/python:3.12"},
           {"library/python:3.12", "docker.io/library/python:3.12"},
           {"docker.io/python:3.12", "docker.io/library/python:3.12"},
           {"index.docker.io/python", "docker.io/library/python:latest"},
           {"team/app:v1", "docker.io/team/app:v1"},
           {"localhost/app", "localhost/app:latest"},
           {"localhost:5000/app", "localhost:5000/app:latest"},
           {"127.0.0.1:5000/a/b/c:x_1.2-3", "127.0.0.1:5000/a/b/c:x_1.2-3"},
           {"[::1]:5000/app", "[::1]:5000/app:latest"},
           {"[2001:DB8::7]/a/b@sha256:" + kDigest, "[2001:db8::7]/a/b@sha256:" + kDigest},
           {"Registry.Example/app", "registry.example/app:latest"},
           {"python@sha256:" + kDigest, "docker.io/library/python@sha256:" + kDigest},
           {"python:3@sha256:" + kDigest, "docker.io/library/python:3@sha256:" + kDigest},
           {"a__b/c-d", "docker.io/a__b/c-d:latest"},
       }) {
    EXPECT_EQ(name_of(c.asked), c.name) << c.asked;
    if (c.name != "refused") EXPECT_EQ(name_of(c.name), c.name) << "a full name stays what it is";
  }
}

TEST(PullReference, TheDefaultRegistryCanBeAnother) {
  EXPECT_EQ(name_of("python:3.12", "registry.example:5000"), "registry.example:5000/python:3.12");
  EXPECT_EQ(name_of("docker.io/python:3.12", "registry.example"), "docker.io/library/python:3.12");
}

TEST(PullReference, ADigestPinsWhatIsAskedFor) {
  EXPECT_EQ(parse_pull_reference("python:3", kDockerHub)->version(), "3");
  EXPECT_EQ(parse_pull_reference("python:3@sha256:" + kDigest, kDockerHub)->version(), "sha256:" + kDigest);
}

TEST(PullReference, WhatIsNoNameIsRefused) {
  for (const std::string& asked : std::vector<std::string>{"",
                                                           "/",
                                                           "/app",
                                                           "app/",
                                                           "a//b",
                                                           "App",
                                                           "team/App",
                                                           "app:",
                                                           "app:-x",
                                                           "app:.x",
                                                           "app:a b",
                                                           "app@",
                                                           "app@sha256:abc",
                                                           "app@sha512:" + kDigest,
                                                           "app@sha256:" + std::string(64, 'A'),
                                                           "localhost:0/app",
                                                           "localhost:x/app",
                                                           "host:99999/app",
                                                           "[::1]",
                                                           "[::1]:/app",
                                                           "[::1]:0/app",
                                                           "[::1]x/app",
                                                           "[::1/app",
                                                           "::1]/app",
                                                           "[]/app",
                                                           "[127.0.0.1]/app",
                                                           "[0:0:0:0:0:0:0:1]/app",
                                                           "[fe80::1%eth0]/app",
                                                           "[::1:5000/app",
                                                           "a/[::1]/app",
                                                           "a..b/../c:1",
                                                           "-a",
                                                           "a-",
                                                           "_a",
                                                           "../app",
                                                           "reg.example/../x",
                                                           "a b",
                                                           "a\nb",
                                                           "user@host/app",
                                                           "http://reg.example/app",
                                                           "reg..example/app",
                                                           "-reg.example/app",
                                                           std::string("a\0b", 3),
                                                           std::string(600, 'a'),
                                                           "app:" + std::string(129, 'a'),
                                                           std::string(300, 'a')}) {
    EXPECT_EQ(name_of(asked), "refused") << asked;
  }
}

TEST(PullReference, ABadDefaultIsRefusedToo) { EXPECT_EQ(name_of("python", "bad host"), "refused"); }

}  // namespace
}  // namespace osb::image
