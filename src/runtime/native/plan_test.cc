#include "runtime/native/plan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "runtime/native/control.h"

namespace osb::runtime {
namespace {

TEST(MakePlan, HostImage) {
  SandboxSpec spec;
  spec.handle = "01900000-0000-7000-8000-000000000001";
  ImageRoot image;
  image.lowers = {"/state/images/host-1/common", "/state/images/host-1/root"};
  image.trees = {{"/usr", "/usr"}};
  image.views = {{"/opt/tools", "/srv/tools"}};
  auto plan = make_plan(spec, image, Limits{1000, 2147483648, 4096, 1 << 30, 1000000, 2000000, 512});
  EXPECT_EQ(launcher::to_text(plan),
            "sandbox 01900000-0000-7000-8000-000000000001 cpu_millis=1000 memory_bytes=2147483648 pids=4096 "
            "io_read_bytes=1000000 io_write_bytes=2000000 disk_bytes=1073741824 open_files=512 "
            "shm_bytes=1073741824\n"
            "overlay / root <- /state/images/host-1/common : /state/images/host-1/root\n"
            "overlay /usr usr <- /usr\n"
            "bind /opt/tools <- /srv/tools\n"
            "proc /proc\n"
            "sysfs /sys\n"
            "devices /dev\n"
            "read-only /proc/sys\n"
            "read-only /proc/sysrq-trigger\n"
            "mask /proc/acpi\n"
            "mask /proc/asound\n"
            "mask /proc/bootconfig\n"
            "mask /proc/bus\n"
            "mask /proc/cmdline\n"
            "mask /proc/diskstats\n"
            "mask /proc/fs\n"
            "mask /proc/interrupts\n"
            "mask /proc/irq\n"
            "mask /proc/kcore\n"
            "mask /proc/keys\n"
            "mask /proc/latency_stats\n"
            "mask /proc/mdstat\n"
            "mask /proc/partitions\n"
            "mask /proc/sched_debug\n"
            "mask /proc/scsi\n"
            "mask /proc/swaps\n"
            "mask /proc/timer_list\n"
            "show-limits\n"
            "hostname sandbox\n");
}

TEST(MakePlan, RootDirectoryImageHasOneTree) {
  SandboxSpec spec;
  spec.handle = "01900000-0000-7000-8000-000000000002";
  ImageRoot image;
  image.lowers = {"/state/images/host-1/common", "/srv/rootfs"};
  std::string text = launcher::to_text(make_plan(spec, image, Limits{}));
  EXPECT_TRUE(
      text.starts_with("sandbox 01900000-0000-7000-8000-000000000002\n"
                       "overlay / root <- /state/images/host-1/common : /srv/rootfs\n"
                       "proc /proc\n"))
      << text;
}

TEST(MakePlan, AReadOnlyRootIsSealedLast) {
  SandboxSpec spec;
  spec.handle = "01900000-0000-7000-8000-000000000003";
  spec.read_only_root = true;
  ImageRoot image;
  image.lowers = {"/state/images/host-1/common"};
  image.trees = {{"/usr", "/usr"}};
  std::string text = launcher::to_text(make_plan(spec, image, Limits{}));
  EXPECT_NE(text.find("overlay /usr usr <- /usr\nscratch /tmp\nscratch /run\nproc /proc\n"), text.npos)
      << text;
  EXPECT_TRUE(text.ends_with("hostname sandbox\nseal /usr\nseal /\n")) << text;
}

TEST(MakePlan, VolumesLieOverTheImageAndUnderTheSystem) {
  SandboxSpec spec;
  spec.handle = "01900000-0000-7000-8000-000000000004";
  spec.owner = "default";
  spec.read_only_root = true;
  spec.mounts = {
      {.source = "/srv/shared", .target = "/in", .sub_path = "a/b"},
      {.source = "cache", .target = "/tmp", .access = Mount::Access::read_write, .kind = Mount::Kind::volume},
      {.source = "data", .target = "/opt/tools", .kind = Mount::Kind::volume, .sub_path = "x"}};
  ImageRoot image;
  image.lowers = {"/state/images/host-1/common"};
  image.views = {{"/opt/tools", "/srv/tools"}};
  std::string text = launcher::to_text(make_plan(spec, image, Limits{}));
  EXPECT_NE(text.find("overlay / root <- /state/images/host-1/common\n"
                      "scratch /run\n"
                      "bind /in <- /srv/shared/a/b ids=owner\n"
                      "volume /opt/tools <- default/data/x\n"
                      "volume /tmp <- default/cache read-write\n"
                      "proc /proc\n"),
            text.npos)
      << text;
}

TEST(MakePlan, AVolumeInAnotherComesAfterIt) {
  SandboxSpec spec;
  spec.handle = "01900000-0000-7000-8000-000000000005";
  spec.owner = "default";
  for (const char* target : {"/work/cache/pip", "/work/cache", "/work-a", "/work"})
    spec.mounts.push_back({.source = "v", .target = target, .kind = Mount::Kind::volume});
  std::string text = launcher::to_text(make_plan(spec, {}, Limits{}));
  size_t parent = text.find("volume /work <-"), child = text.find("volume /work/cache <-");
  ASSERT_TRUE(parent != text.npos && child != text.npos) << text;
  EXPECT_LT(parent, child);
  EXPECT_LT(child, text.find("volume /work/cache/pip <-"));
}

TEST(MakePlan, AnOwnerIsTheNameOfADirectory) {
  EXPECT_EQ(volume_owner("default"), "default");
  for (const char* odd : {"", "../x", "A", "a/b", "x@example.com", "."}) {
    std::string name = volume_owner(odd);
    EXPECT_EQ(name.size(), 70u) << odd;
    EXPECT_TRUE(name.starts_with("owner-")) << odd;
  }
  EXPECT_NE(volume_owner("A"), volume_owner("B"));
}

TEST(MakePlan, SharedMemoryIsAPartOfTheMemory) {
  SandboxSpec spec;
  EXPECT_EQ(make_plan(spec, {}, Limits{}).shm_bytes, std::nullopt);
  EXPECT_EQ(make_plan(spec, {}, Limits{.memory_bytes = 1 << 28}).shm_bytes, 1 << 27);
  spec.shm_bytes = 1 << 20;
  EXPECT_EQ(make_plan(spec, {}, Limits{.memory_bytes = 1 << 28}).shm_bytes, 1 << 20);
}

TEST(Images, UnknownNamesListTheKnownOnes) {
  ImageSettings settings;
  settings.state_dir = "/state";
  settings.directories = {{"debian", "/srv/debian"}};
  Images images(settings);
  EXPECT_TRUE(images.find("host"));
  EXPECT_TRUE(images.find("debian"));
  for (const char* name : {"", "nope", "debian/..", "/", "HOST"}) {
    auto missing = images.find(name);
    ASSERT_FALSE(missing) << name;
    EXPECT_EQ(missing.error().code, Code::not_found);
    EXPECT_NE(missing.error().message.find("host, debian"), std::string::npos);
  }
}

TEST(Images, OnesOfSandboxesAreTheirOwners) {
  char name[] = "/tmp/osb-images-XXXXXX";
  std::string state = ::mkdtemp(name);
  ImageSettings settings;
  settings.state_dir = state;
  settings.host_version = "host-1";
  settings.directories = {{"debian", "/srv/debian"}};
  settings.aliases = {{"ubuntu:*", "debian"}};
  Images images(settings);
  EXPECT_EQ(images.base_of("ubuntu:1"), "debian");
  EXPECT_EQ(images.base_of("host"), "host");
  EXPECT_EQ(images.base_of("other"), "");
  image::Index index;
  image::Image image;
  image.id = std::string(64, 'c');
  image.base = "debian";
  image.owner = "one";
  image.over = {{"root", std::string(64, 'e')}, {"root", std::string(64, 'd')}};
  index.images[image.id] = image;
  index.names["mine"] = image.id;
  ASSERT_EQ(::mkdir((state + "/catalog").c_str(), 0755), 0);
  ASSERT_TRUE(write_file(image::index_path(state), encode(index), O_CREAT));
  auto root = images.find("mine", "one");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(root->id, image.id);
  EXPECT_EQ(root->lowers, (std::vector<std::string>{state + "/images/host-1/common", "/srv/debian"}));
  for (const char* other : {"two", ""}) {
    auto hidden = images.find("mine", other);
    ASSERT_FALSE(hidden) << other;
    EXPECT_EQ(hidden.error().message.find("mine,"), std::string::npos);
  }
  // A snapshot over it names its layers, too: none of them twice.
  SandboxSpec spec;
  spec.image.layers = {
      {"root", std::string(64, 'f')}, {"root", std::string(64, 'e')}, {"root", std::string(64, 'd')}};
  auto plan = make_plan(spec, *root, Limits{}, state);
  std::string layers = state + "/images/snapshots/layers/";
  EXPECT_EQ(plan.steps[0].lowers,
            (std::vector<std::string>{layers + std::string(64, 'f'), layers + std::string(64, 'e'),
                                      layers + std::string(64, 'd'), state + "/images/host-1/common",
                                      "/srv/debian"}));
  ::unlink(image::index_path(state).c_str());
  ::rmdir((state + "/catalog").c_str());
  ::rmdir(state.c_str());
}

TEST(Images, ImportedOnesAreSeenAsSoonAsTheIndexChanges) {
  char name[] = "/tmp/osb-images-XXXXXX";
  std::string state = ::mkdtemp(name);
  ImageSettings settings;
  settings.state_dir = state;
  settings.host_version = "host-1";
  settings.aliases = {{"python:*", "app"}};
  Images images(settings);
  EXPECT_FALSE(images.find("app"));
  image::Index index;
  image::Image image;
  image.id = std::string(64, 'c');
  image.layers = {std::string(64, 'a'), std::string(64, 'b')};
  image.config.user = "app";
  index.images[image.id] = image;
  index.names["app"] = image.id;
  ASSERT_EQ(::mkdir((state + "/catalog").c_str(), 0755), 0);
  ASSERT_TRUE(write_file(image::index_path(state), encode(index), O_CREAT));
  for (const char* asked : {"app", "app:latest", "python:3.11"}) {
    auto root = images.find(asked);
    ASSERT_TRUE(root) << asked;
    EXPECT_EQ(root->id, image.id);
    EXPECT_EQ(root->config.user, "app");
    std::string layers = state + "/images/store/layers/";
    EXPECT_EQ(root->lowers, (std::vector{state + "/images/host-1/common", layers + image.layers[1],
                                         layers + image.layers[0]}));
  }
  auto missing = images.find("nope");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("osb images import"), std::string::npos);
  ASSERT_TRUE(write_file(image::index_path(state), "{", O_TRUNC));
  auto broken = images.find("app");
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().code, Code::not_found) << "an index that cannot be read says nothing about images";
  ::unlink(image::index_path(state).c_str());
  EXPECT_FALSE(images.find("app"));
  ::rmdir((state + "/catalog").c_str());
  ::rmdir(state.c_str());
}

TEST(Control, StatesAndNonsense) {
  auto ended = parse_control_state(R"({"state":"ended","exit_code":3})");
  EXPECT_EQ(ended->protocol, 1) << "an execd of an earlier version says nothing";
  EXPECT_EQ(parse_control_state(R"({"protocol":2,"state":"waiting"})")->protocol, 2);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->kind, ControlState::Kind::ended);
  EXPECT_EQ(ended->exit_code, 3);
  for (const char* text :
       {"", "{}", "[]", "3", R"({"state":1})", R"({"state":"asleep"})", R"({"state":"ended")"}) {
    EXPECT_FALSE(parse_control_state(text)) << text;
  }
}

}  // namespace
}  // namespace osb::runtime
