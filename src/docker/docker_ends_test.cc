#include <gtest/gtest.h>
#include <signal.h>

#include "docker/docker_sandbox.h"

namespace osb::docker {
namespace {

Container ended(int code) {
  Container out;
  out.id = "c";
  out.status = "exited";
  out.exit_code = code;
  out.finished = true;
  return out;
}

TEST(DockerEnds, WhatTheEngineSays) {
  using Kind = End::Kind;
  struct {
    int code;
    Kind kind;
    int number;
    const char* words;
  } cases[] = {{0, Kind::exited, 0, "code 0"},
               {1, Kind::exited, 1, "code 1"},
               {128, Kind::exited, 128, "code 128"},
               {137, Kind::signalled, SIGKILL, "signal 9"},
               {143, Kind::signalled, SIGTERM, "signal 15"},
               {255, Kind::exited, 255, "code 255"}};
  for (const auto& one : cases) {
    End end = end_of(ended(one.code));
    EXPECT_EQ(end.kind, one.kind) << one.code;
    EXPECT_EQ(end.number, one.number) << one.code;
    EXPECT_NE(end.detail.find(one.words), std::string::npos) << end.detail;
  }
}

TEST(DockerEnds, WhatItDoesNotKnow) {
  using Kind = End::Kind;
  Container unseen = ended(0);
  unseen.finished = false;
  EXPECT_EQ(end_of(unseen).kind, Kind::lost) << "no code is a 0 of which nobody knows when it came";
  Container never = ended(0);
  never.status = "created";
  EXPECT_EQ(end_of(never).kind, Kind::lost);
  Container full = ended(137);
  full.out_of_memory = true;
  EXPECT_EQ(end_of(full).kind, Kind::out_of_memory);
  Container refused = ended(127);
  refused.error = "no such program";
  EXPECT_NE(end_of(refused).detail.find("no such program"), std::string::npos);
}

}  // namespace
}  // namespace osb::docker
