#include "server/record.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "runtime/runtime.h"

namespace osb::server {
namespace {

sandbox::Sandbox row() {
  sandbox::Sandbox row;
  row.id = new_uuid7();
  row.owner = "somebody";
  row.handle = new_uuid4();
  row.image = "host";
  row.entrypoint = {"sh", "-c", "echo \"x\""};
  row.metadata = {{"a", "1"}};
  row.limits = {{"cpu", "1"}};
  row.env_names = {"A"};
  row.extensions = {{"e", "f"}};
  row.platform = "linux/amd64";
  row.created = WallTime(std::chrono::microseconds(1'700'000'000'000'001));
  row.expires = row.created + std::chrono::seconds(60);
  return row;
}

TEST(Record, ARowIsMadeAgain) {
  sandbox::Sandbox made = row();
  auto again = from_record(to_record(made));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->id, made.id);
  EXPECT_EQ(again->owner, made.owner);
  EXPECT_EQ(again->handle, made.handle);
  EXPECT_EQ(again->image, made.image);
  EXPECT_EQ(again->entrypoint, made.entrypoint);
  EXPECT_EQ(again->metadata, made.metadata);
  EXPECT_EQ(again->limits, made.limits);
  EXPECT_EQ(again->env_names, made.env_names);
  EXPECT_EQ(again->extensions, made.extensions);
  EXPECT_EQ(again->platform, made.platform);
  EXPECT_EQ(again->created, made.created);
  EXPECT_EQ(again->expires, made.expires);
  made.expires.reset();
  EXPECT_EQ(from_record(to_record(made))->expires, std::nullopt);
}

TEST(Record, SaysWhoseItIsWhenThatIsNotTheUsual) {
  sandbox::Sandbox made = row();
  made.runtime = "native";
  EXPECT_EQ(from_record(to_record(made))->runtime, "") << "whoever finds it has it";
  made.runtime = "runsc";
  EXPECT_EQ(from_record(to_record(made))->runtime, "runsc");
}

TEST(Record, VolumesComeBackAsTheyWere) {
  using Backend = sandbox::Volume::Backend;
  std::vector<sandbox::Volume> volumes = {
      {.backend = Backend::host, .source = "/srv/a", .mount_path = "/a", .read_only = true},
      {.backend = Backend::claim, .source = "b", .mount_path = "/b", .sub_path = "c/d", .create = false},
      {.backend = Backend::claim,
       .source = "e",
       .mount_path = "/e",
       .ephemeral = true,
       .size_bytes = 1 << 30}};
  std::string record = to_record(row(), Environment{}, volumes);
  auto again = volumes_of(record);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, volumes);
  EXPECT_TRUE(volumes_of(to_record(row()))->empty());
  EXPECT_TRUE(from_record(record));
  sandbox::Sandbox made = row();
  made.entrypoint = {"sh", std::string(100'000, 'x')};
  EXPECT_EQ(*volumes_of(to_record(made, Environment{{"A", std::string(70'000, 'x')}}, volumes)), volumes);
  for (const char* bad : {R"({"volumes":{}})", R"({"volumes":[1]})", R"({"volumes":[{}]})", "{", "[]"})
    EXPECT_FALSE(volumes_of(bad)) << bad;
}

TEST(Record, HooksComeBackAsTheyWere) {
  const std::string hooks = R"({"preStart":{"command":["a","\"b\""]}})";
  std::string record = to_record(row(), Environment{{"A", "1"}}, {}, hooks);
  EXPECT_EQ(hooks_of(record), hooks);
  EXPECT_EQ(hooks_of(with_network(record, "x")), hooks);
  EXPECT_TRUE(from_record(record));
  EXPECT_EQ(hooks_of(to_record(row())), "");
  for (const char* without : {"", "{", "[]", R"({"version":1})"}) EXPECT_EQ(hooks_of(without), "") << without;
  // What was there and is not known any more is not the same as none.
  std::string cut = to_record(row(), Environment{}, {}, std::string(70'000, 'x'));
  EXPECT_LE(cut.size(), runtime::kMaxRecord);
  EXPECT_EQ(hooks_of(cut), std::nullopt);
  EXPECT_EQ(hooks_of(to_record(row(), Environment{}, {}, hooks_of(cut))), std::nullopt);
  EXPECT_EQ(hooks_of(R"({"hooks":1})"), std::nullopt);
  EXPECT_EQ(from_record(cut)->metadata, row().metadata);
}

TEST(Record, IsBounded) {
  sandbox::Sandbox made = row();
  made.entrypoint = {"sh", std::string(100'000, 'x')};
  std::string record = to_record(made);
  EXPECT_LE(record.size(), runtime::kMaxRecord);
  EXPECT_TRUE(from_record(record)->entrypoint.empty());
  EXPECT_EQ(from_record(record)->metadata, made.metadata) << "what matters more is kept";
}

// As a service before there were owners wrote it.
TEST(Record, OneWithoutAnOwnerIsTheDefaultOwners) {
  auto read = from_record(
      R"({"version":1,"id":"0198d2b5-7e6a-7c3e-9d39-6a0c5d0e4f21","handle":"5b2c1c9e-1111-4c3e-9d39-6a0c5d0e4f21",)"
      R"("image":"host","platform":"","created":1700000000000001,"entrypoint":"[\"sleep\",\"9\"]","envNames":"[]",)"
      R"("extensions":"{}","metadata":"{\"a\":\"1\"}","limits":"{}"})");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->owner, sandbox::kDefaultOwner);
  EXPECT_EQ(read->entrypoint, (std::vector<std::string>{"sleep", "9"}));
  EXPECT_EQ(read->metadata, (sandbox::Metadata{{"a", "1"}}));
}

TEST(Record, EverythingElseIsRefused) {
  std::string good = to_record(row());
  auto with = [&](std::string_view what, std::string_view instead) {
    std::string text = good;
    size_t at = text.find(what);
    EXPECT_NE(at, text.npos) << what;
    return text.replace(at, what.size(), instead);
  };
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[]"), std::string("null"),
        good.substr(0, good.size() / 2), good + "x", with("\"version\":1", "\"version\":2"),
        with("\"id\":\"", "\"id\":\"../"), with("\"handle\":\"", "\"handle\":\"x"),
        with("\"owner\":\"somebody\"", "\"owner\":\"\""), with("\"owner\":\"somebody\"", "\"owner\":1"),
        with("\"created\":", "\"created\":\"soon\",\"x\":"), with("\"{\\\"a\\\":\\\"1\\\"}\"", "\"[1]\""),
        with("\"{\\\"a\\\":\\\"1\\\"}\"", "\"{\"")}) {
    auto read = from_record(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, Code::corrupt);
  }
}

}  // namespace
}  // namespace osb::server
