#include "docker/sandbox_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/spec.h"

namespace osb::docker {
namespace {

constexpr char kHandle[] = "334de8da-ebfb-427e-9478-23aeabe8824e";

class SandboxFilesTest : public testing::Test {
 protected:
  SandboxFilesTest() {
    char name[] = "/tmp/osb-files-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  ~SandboxFilesTest() override { std::filesystem::remove_all(directory_); }
  SandboxFiles open(std::string_view execd = "execd's bytes") {
    auto files = SandboxFiles::open(directory_ + "/docker", execd);
    EXPECT_TRUE(files) << files.error().message;
    return std::move(*files);
  }
  mode_t mode_of(const std::string& name) {
    struct stat info{};
    EXPECT_EQ(::stat((directory_ + "/docker/" + name).c_str(), &info), 0) << name;
    return info.st_mode & 07777;
  }
  std::string directory_;
};

TEST_F(SandboxFilesTest, ASecretIsInsideUntilExecdHasReadIt) {
  SandboxFiles files = open();
  auto made = files.make_with_secret(kHandle, "record", SandboxFiles::Secret::shown);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*files.read_secret(kHandle), made->secret);
  EXPECT_EQ(files.read_token(kHandle).error().code, Code::not_found) << "its egress is this service's";
  EXPECT_EQ(mode_of(std::string(kHandle)), 0700u);
  EXPECT_EQ(mode_of(std::string(kHandle) + "/secret"), 0600u);
  std::string inside = directory_ + "/docker/" + kHandle + "/boot/secret";
  EXPECT_TRUE(std::filesystem::exists(inside));
  files.close_boot(kHandle);
  EXPECT_FALSE(std::filesystem::exists(inside));
  EXPECT_EQ(*files.read_secret(kHandle), made->secret) << "the server's own stays";
  EXPECT_EQ(*files.read_record(kHandle), "record");
  ASSERT_TRUE(files.remove(kHandle));
  EXPECT_EQ(files.read_secret(kHandle).error().code, Code::not_found);
}

TEST_F(SandboxFilesTest, ASecretThatNoContainerSees) {
  SandboxFiles files = open();
  auto made = files.make_with_secret(kHandle, "record", SandboxFiles::Secret::kept);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*files.read_secret(kHandle), made->secret);
  EXPECT_EQ(*files.read_token(kHandle), made->token);
  EXPECT_NE(made->token, made->secret) << "neither is to be had from the other";
  EXPECT_EQ(mode_of(std::string(kHandle) + "/token"), 0600u);
  EXPECT_EQ(files.vital_files(kHandle)->size(), 5u) << "three, and the directories that name them";
  EXPECT_FALSE(files.vital_files("..")) << "no handle";
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/docker/" + kHandle + "/boot/secret"));
}

TEST(BootInside, WhatIsNearIt) {
  for (const char* near :
       {"/opt/opensandbox/boot", "/opt/opensandbox/boot/execd", "/opt/opensandbox", "/opt"})
    EXPECT_TRUE(is_near_boot(near)) << near;
  for (const char* far :
       {"/opt/opensandbox/boots", "/opt/opensandbox/boo", "/opt/open", "/opt/x", "/op", "/v"})
    EXPECT_FALSE(is_near_boot(far)) << far;
}

TEST_F(SandboxFilesTest, TheVolumeOfAnEngineIsForOneExecd) {
  SandboxFiles files = open("first");
  EXPECT_EQ(files.read_boot_volume().error().code, Code::not_found);
  ASSERT_TRUE(files.write_boot_volume(files.boot_volume_prefix() + "-1"));
  EXPECT_EQ(mode_of("boot-volume"), 0600u);
  SandboxFiles later = open("second");
  EXPECT_EQ(*later.read_boot_volume(), files.boot_volume_prefix() + "-1") << "to be removed some day";
  EXPECT_NE(later.boot_volume_prefix(), files.boot_volume_prefix());
  EXPECT_EQ(later.list()->size(), 0u) << "it is no sandbox";
  EXPECT_EQ(later.vital_files()->size(), 2u);
  later.distrust_boot_volume("another");
  EXPECT_TRUE(later.read_boot_volume());
  later.distrust_boot_volume(files.boot_volume_prefix() + "-1");
  EXPECT_EQ(later.read_boot_volume().error().code, Code::not_found);
}

TEST_F(SandboxFilesTest, WhatIsTakenOverIsKnownAgain) {
  SandboxFiles files = open();
  EXPECT_FALSE(files.is_taken_over(kHandle));
  ASSERT_TRUE(files.take_over(kHandle, "first"));
  ASSERT_TRUE(files.take_over(kHandle, "second")) << "a server that was killed in between";
  EXPECT_TRUE(files.is_taken_over(kHandle));
  EXPECT_EQ(*files.read_record(kHandle), "second");
  ASSERT_TRUE(files.remove(kHandle));
  EXPECT_FALSE(files.is_taken_over(kHandle));
  ASSERT_TRUE(files.make(kHandle, "ours"));
  EXPECT_FALSE(files.is_taken_over(kHandle)) << "a container of this server";
  EXPECT_FALSE(files.is_taken_over("../x"));
  EXPECT_FALSE(files.take_over("../x", ""));
}

TEST_F(SandboxFilesTest, OneWithSocketsHasNoSecret) {
  SandboxFiles files = open();
  ASSERT_TRUE(files.make(kHandle, ""));
  EXPECT_EQ(files.read_secret(kHandle).error().code, Code::not_found);
  EXPECT_EQ(files.read_secret("..").error().code, Code::not_found);
}

TEST_F(SandboxFilesTest, WhatTheContainerSeesIsApartFromItsSockets) {
  SandboxFiles files = open();
  auto made = files.make(kHandle, "record");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(mode_of(""), 0700u);
  EXPECT_EQ(mode_of(kHandle), 0700u);
  EXPECT_EQ(mode_of(std::string(kHandle) + "/boot"), 0755u);
  EXPECT_EQ(mode_of(std::string(kHandle) + "/boot/execd"), 0755u);
  EXPECT_EQ(*read_file(files.boot_on_host(kHandle) + "/execd"), "execd's bytes");
  files.close_boot(kHandle);
  EXPECT_FALSE(std::filesystem::exists(files.boot_on_host(kHandle) + "/hub"));
  EXPECT_EQ(files.make(kHandle, "").error().code, Code::already_exists);
  EXPECT_EQ(files.list()->size(), 1u);
  EXPECT_TRUE(files.remove(kHandle));
  EXPECT_TRUE(files.remove(kHandle)) << "twice is fine";
  EXPECT_TRUE(files.list()->empty());
}

TEST_F(SandboxFilesTest, RecordsAreReplaced) {
  SandboxFiles files = open();
  ASSERT_TRUE(files.make(kHandle, "one"));
  EXPECT_TRUE(files.write_record(kHandle, "two"));
  EXPECT_EQ(*files.read_record(kHandle), "two");
  EXPECT_EQ(files.write_record(kHandle, std::string(runtime::kMaxRecord + 1, 'x')).error().code,
            Code::too_large);
  EXPECT_EQ(*open().read_record(kHandle), "two");
}

TEST_F(SandboxFilesTest, RecordsOfSnapshots) {
  SandboxFiles files = open();
  EXPECT_EQ(files.read_snapshot_record(kHandle).error().code, Code::not_found);
  EXPECT_TRUE(files.write_snapshot_record(kHandle, "record"));
  EXPECT_EQ(*open().read_snapshot_record(kHandle), "record");
  EXPECT_TRUE(files.list()->empty()) << "it is no sandbox";
  EXPECT_TRUE(files.remove_snapshot_record(kHandle));
  EXPECT_TRUE(files.remove_snapshot_record(kHandle)) << "twice is fine";
  EXPECT_EQ(files.read_snapshot_record(kHandle).error().code, Code::not_found);
  for (const char* wrong : {"", "..", "../x", "a/b"})
    EXPECT_EQ(files.write_snapshot_record(wrong, "").error().code, Code::invalid_argument) << wrong;
}

TEST_F(SandboxFilesTest, WhatAKillLeftHalfWrittenGoes) {
  {
    SandboxFiles files = open();
  }
  std::ofstream(directory_ + "/docker/snapshot-" + kHandle + ".new") << "variables";
  open();
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/docker/snapshot-" + kHandle + ".new"));
}

TEST_F(SandboxFilesTest, OnlyHandlesAreNames) {
  SandboxFiles files = open();
  for (const char* wrong : {"", "..", "../x", "a/b", "334de8da", "334DE8DA-EBFB-427E-9478-23AEABE8824E"}) {
    EXPECT_EQ(files.make(wrong, "").error().code, Code::invalid_argument) << wrong;
    EXPECT_EQ(files.read_record(wrong).error().code, Code::not_found) << wrong;
    EXPECT_TRUE(files.remove(wrong)) << wrong;
  }
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/docker"));
}

TEST_F(SandboxFilesTest, AnotherVersionOfExecd) {
  ASSERT_TRUE(open().make(kHandle, ""));
  SandboxFiles later = open("other bytes");
  EXPECT_EQ(*read_file(later.boot_on_host(kHandle) + "/execd"), "execd's bytes") << "what runs keeps its own";
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/docker"))
    count += entry.path().filename().string().starts_with("execd-");
  EXPECT_EQ(count, 1u);
}

}  // namespace
}  // namespace osb::docker
