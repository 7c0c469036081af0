#include "runtime/native/entry_process.h"

#include <gmock/gmock.h>

#include "base/hooks_variable.h"

namespace osb::runtime {
namespace {

using ::testing::Contains;
using ::testing::Not;
using ::testing::Pair;

const Limits kLimits = {};

Claim claim() {
  Claim out;
  out.id = "id";
  out.entrypoint = {"a", "b"};
  out.env = {{"A", "request"}, {"OPENSANDBOX_ID", "forged"}};
  return out;
}

TEST(EntryProcess, WithoutAConfiguration) {
  EntryProcess entry = entry_process(claim(), kLimits, {});
  EXPECT_EQ(entry.arguments, claim().entrypoint);
  EXPECT_EQ(entry.directory, "/");
  EXPECT_EQ(entry.uid, 0u);
  for (const auto& [name, value] : {std::pair{"A", "request"},
                                    {"OPENSANDBOX_ID", "id"},
                                    {"HOME", "/root"},
                                    {"USER", "root"},
                                    {"EXECD_ENVS", "/opt/opensandbox/.env"}}) {
    EXPECT_THAT(entry.environment, Contains(Pair(name, value)));
  }
  EXPECT_THAT(entry.environment, Not(Contains(Pair("OPENSANDBOX_ID", "forged"))));
}

TEST(EntryProcess, OneThatInheritsNamesNoUserAndNoDirectory) {
  EntryProcess entry = entry_process(claim(), kLimits, {});
  entry.inherits = true;
  entry.memory_bytes = 5;
  std::string text = encode_entry(entry);
  EXPECT_NE(text.find("\"inherit\":true"), text.npos) << text;
  EXPECT_NE(text.find("\"argv\":[\"a\",\"b\"]"), text.npos) << text;
  EXPECT_NE(text.find("\"memory_bytes\":5"), text.npos) << text;
  EXPECT_EQ(text.find("\"uid\""), text.npos) << text;
  EXPECT_EQ(text.find("\"cwd\""), text.npos) << text;
}

TEST(EntryProcess, HooksAreTheRequests) {
  image::ImageConfig image;
  image.env = {{kHooksVariable, "the image's"}};
  EXPECT_THAT(entry_process(claim(), kLimits, image).environment,
              Not(Contains(Pair(kHooksVariable, ::testing::_))));
  Claim with = claim();
  with.env.emplace_back(kHooksVariable, "the request's");
  EXPECT_THAT(entry_process(with, kLimits, image).environment,
              Contains(Pair(kHooksVariable, "the request's")));
}

TEST(EntryProcess, TheImageThenTheRequest) {
  image::ImageConfig image;
  image.env = {{"A", "image"}, {"B", "image"}, {"PATH", "/bin"}};
  image.uid = 1000;
  image.gid = 50;
  image.user_name = "app";
  image.home = "/home/app";
  image.workdir = "/work";
  EntryProcess entry = entry_process(claim(), kLimits, image);
  EXPECT_EQ(entry.uid, 1000u);
  EXPECT_EQ(entry.gid, 50u);
  EXPECT_EQ(entry.directory, "/work");
  for (const auto& [name, value] : {std::pair{"A", "request"},
                                    {"B", "image"},
                                    {"PATH", "/bin"},
                                    {"HOME", "/home/app"},
                                    {"USER", "app"}}) {
    EXPECT_THAT(entry.environment, Contains(Pair(name, value)));
  }
  EXPECT_THAT(entry.environment, Not(Contains(Pair("A", "image"))));
}

TEST(EntryProcess, AnIdThatTheImageDoesNotKnow) {
  image::ImageConfig image;
  image.uid = 4242;
  EntryProcess entry = entry_process(claim(), kLimits, image);
  EXPECT_THAT(entry.environment, Contains(Pair("HOME", "/")));
  EXPECT_THAT(entry.environment, Contains(Pair("USER", "4242")));
}

}  // namespace
}  // namespace osb::runtime
