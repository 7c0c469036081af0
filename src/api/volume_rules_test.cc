#include "api/volume_rules.h"

#include <gtest/gtest.h>

namespace osb::api {
namespace {

using Backend = Volume::Backend;

const std::vector<std::string> kAllowed = {"/srv/shared", "/data"};

Volume host(std::string path, std::string mount = "/mnt/a") {
  Volume volume;
  volume.name = "a";
  volume.mount_path = std::move(mount);
  volume.source = std::move(path);
  return volume;
}

Volume claim(std::string name, std::string mount = "/mnt/a") {
  Volume volume = host(std::move(name), std::move(mount));
  volume.backend = Backend::claim;
  return volume;
}

std::string code_of(const std::vector<Volume>& volumes, const std::vector<std::string>& allowed = kAllowed) {
  auto checked = check_volumes(volumes, allowed);
  if (!checked) EXPECT_EQ(checked.error().status, 400);
  return checked ? "" : checked.error().code;
}

TEST(VolumeRules, WhatMayBeAskedForIsPassedOn) {
  Volume volume = claim("cache");
  volume.read_only = true;
  volume.sub_path = "pip/wheels";
  volume.create = false;
  volume.ephemeral = true;
  auto checked = check_volumes({volume}, {});
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->front(), (sandbox::Volume{.backend = sandbox::Volume::Backend::claim,
                                               .source = "cache",
                                               .mount_path = "/mnt/a",
                                               .sub_path = "pip/wheels",
                                               .read_only = true,
                                               .create = false,
                                               .ephemeral = true}));
  for (const char* path : {"/srv/shared", "/srv/shared/x/y", "/data", "/data/..."})
    EXPECT_EQ(code_of({host(path)}), "") << path;
}

TEST(VolumeRules, OnlyWhatIsOnTheListAndBelow) {
  for (const char* path : {"/srv", "/srv/sharedmore", "/etc", "/dat", "/", "/srv/Shared"})
    EXPECT_EQ(code_of({host(path)}), "VOLUME::HOST_PATH_NOT_ALLOWED") << path;
  EXPECT_EQ(code_of({host("/srv/shared")}, {}), "VOLUME::HOST_PATH_NOT_ALLOWED");
}

TEST(VolumeRules, AHostPathIsPlain) {
  for (const char* path : {"/data/../etc", "/data/", "/data//x", "//data", "/data/.", "/data/..", "C:\\data",
                           "C:/data", "/./data"})
    EXPECT_EQ(code_of({host(path)}), "VOLUME::INVALID_HOST_PATH") << path;
  EXPECT_EQ(code_of({host("/data/" + std::string(300, 'a'))}), "VOLUME::INVALID_HOST_PATH");
  EXPECT_EQ(code_of({host(std::string("/data/a\0b", 9))}), "VOLUME::INVALID_HOST_PATH");
}

TEST(VolumeRules, AMountPathIsAPlaceOfItsOwn) {
  for (const char* path : {"/", "/proc", "/proc/x", "/sys", "/sys/fs/cgroup", "/dev", "/dev/shm", "/a/../b",
                           "/a//", "/a//b", "/a/.", "//a", "//", "/proc/", "/dev/shm/"})
    EXPECT_EQ(code_of({claim("v", path)}), "VOLUME::INVALID_MOUNT_PATH") << path;
  for (const char* path : {"/devices", "/a", "/tmp", "/usr/local", "/process", "/a/", "/a/b/"})
    EXPECT_EQ(code_of({claim("v", path)}), "") << path;
  for (auto [one, two] : {std::pair("/a", "/a"), {"/a/", "/a"}, {"/a/b", "/a/b/"}}) {
    Volume second = claim("v", two);
    second.name = "b";
    EXPECT_EQ(code_of({claim("v", one), second}), "VOLUME::INVALID_MOUNT_PATH") << one << " " << two;
  }
  for (auto [one, two] : {std::pair("/a", "/ab"), {"/a", "/a/b"}, {"/a/b", "/a"}}) {
    Volume second = claim("v", two);
    second.name = "b";
    EXPECT_EQ(code_of({claim("v", one), second}), "") << one << " " << two;
  }
}

TEST(VolumeRules, ASlashAtTheEndMeansNothing) {
  Volume volume = claim("v", "/mnt/a/");
  volume.sub_path = "b/c/";
  auto checked = check_volumes({volume}, {});
  ASSERT_TRUE(checked);
  EXPECT_EQ(checked->front().mount_path, "/mnt/a");
  EXPECT_EQ(checked->front().sub_path, "b/c");
}

TEST(VolumeRules, ASubPathStaysInTheVolume) {
  for (const char* path : {"/a", "..", "a/..", "../a", "a/../../b", "a//b", "a//", "/", "./a", "."}) {
    Volume volume = claim("v");
    volume.sub_path = path;
    EXPECT_EQ(code_of({volume}), "VOLUME::INVALID_SUB_PATH") << path;
  }
  for (const char* path : {"", "a", "a/b", "...", "a b"}) {
    Volume volume = claim("v");
    volume.sub_path = path;
    EXPECT_EQ(code_of({volume}), "") << path;
  }
}

TEST(VolumeRules, NamesAreUnique) {
  EXPECT_EQ(code_of({claim("v", "/a"), claim("w", "/b")}), "VOLUME::DUPLICATE_NAME");
}

TEST(VolumeRules, WhatIsNotHereIsRefusedByItsName) {
  Volume bucket = host("bucket");
  bucket.backend = Backend::object_store;
  EXPECT_EQ(code_of({bucket}), "SANDBOX::UNSUPPORTED");
}

TEST(VolumeRules, ASizeIsInRange) {
  Volume sized = claim("v");
  sized.storage = "1Gi";
  EXPECT_EQ(check_volumes({sized}, {})->front().size_bytes, 1 << 30);
  for (auto [text, bytes] : {std::pair<const char*, int64_t>("1.5Gi", 3ll << 29),
                             {"0.5Gi", 1 << 29},
                             {"0.1Gi", 107'374'183},  // and two fifths of a byte less
                             {"0.001Pi", 1'125'899'906'843},
                             {"16777216", 16 << 20},
                             {"16777215.5", 16 << 20},
                             {"16Ti", 1ll << 44},
                             {"32.00Mi", 32 << 20}}) {
    sized.storage = text;
    auto checked = check_volumes({sized}, {});
    ASSERT_TRUE(checked) << text;
    EXPECT_EQ(checked->front().size_bytes, bytes) << text;
  }
  std::string huge(400, '9');
  for (const char* text : {"1", "15Mi", "15.999Mi", "17Ti", "16.0001Ti", "1Ei", "0.0Gi", "0", "1.5.5Gi",
                           "1.5Xi", huge.c_str()}) {
    sized.storage = text;
    EXPECT_EQ(code_of({sized}), "SANDBOX::INVALID_PARAMETER") << text;
  }
}

TEST(VolumeRules, ThereIsAnEnd) {
  std::vector<Volume> many;
  for (size_t i = 0; i <= kMostVolumes; ++i) {
    many.push_back(claim("v", "/m" + std::to_string(i)));
    many.back().name = "n" + std::to_string(i);
  }
  EXPECT_EQ(code_of(many), "SANDBOX::INVALID_PARAMETER");
  many.pop_back();
  EXPECT_EQ(code_of(many), "");
  for (Volume& volume : many)
    volume.sub_path = std::string(200, 'a') + "/" + std::string(200, 'b') + "/" + std::string(200, 'c');
  EXPECT_EQ(code_of(many), "SANDBOX::INVALID_PARAMETER");
}

}  // namespace
}  // namespace osb::api
