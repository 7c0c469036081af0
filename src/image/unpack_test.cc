#include "image/unpack.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>

#include "base/fd.h"
#include "image/libraries.h"
#include "image/test_tar.h"

namespace osb::image {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Unpack : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(load_libraries());
    char name[] = "/tmp/osb-unpack-XXXXXX";
    base_ = ::mkdtemp(name);
    root_ = base_ + "/root";
    ASSERT_EQ(::mkdir(root_.c_str(), 0755), 0);
    ASSERT_TRUE(write_file(base_ + "/outside", "untouched", O_CREAT));
  }
  void TearDown() override {
    EXPECT_EQ(read_file(base_ + "/outside").value_or("?"), "untouched");
    std::vector<std::string> beside;
    for (const auto& entry : fs::directory_iterator(base_)) beside.push_back(entry.path().filename());
    EXPECT_THAT(beside, testing::UnorderedElementsAre("root", "outside"));
    std::error_code ignored;
    fs::remove_all(base_, ignored);
  }

  Result<UnpackReport> run(const std::string& bytes, UnpackOptions options = {}) {
    options.owners = TreeWriter::Owners::ignore;
    Fd dir(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    MemorySource source(bytes);
    return unpack(source, dir.get(), options);
  }
  Result<UnpackReport> run(const TestTar& tar, UnpackOptions options = {}) {
    return run(tar.bytes(), std::move(options));
  }

  std::string text(const std::string& name) { return read_file(root_ + "/" + name).value_or("(none)"); }
  struct stat info(const std::string& name) {
    struct stat out{};
    if (::lstat((root_ + "/" + name).c_str(), &out) < 0) out.st_mode = 0;
    return out;
  }
  bool is_whiteout(const std::string& name) {
    struct stat s = info(name);
    return S_ISCHR(s.st_mode) && s.st_rdev == makedev(0, 0);
  }

  std::string base_, root_;
};

TEST_F(Unpack, OrdinaryTree) {
  TestTar tar;
  tar.directory("./").directory("./etc/").file("./etc/motd", "hello\n").file("bin/tool", "x", 04755);
  tar.symlink("etc/link", "motd").hard_link("etc/same", "./etc/motd").directory("closed", 0700);
  auto done = run(tar);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text("etc/motd"), "hello\n");
  EXPECT_EQ(text("etc/link"), "hello\n");
  EXPECT_EQ(info("etc/motd").st_ino, info("etc/same").st_ino);
  EXPECT_EQ(info("bin/tool").st_mode & 07777, 04755u);
  EXPECT_EQ(info("closed").st_mode & 07777, 0700u);
  EXPECT_EQ(info("bin").st_mode & 07777, 0755u) << "a parent that the archive does not name";
  EXPECT_EQ(info("etc/motd").st_mtim.tv_sec, 1000000000);
  EXPECT_EQ(info("etc").st_mtim.tv_sec, 1000000000) << "also of a directory into which more was written";
  EXPECT_EQ(done->entries, 7u);
  EXPECT_EQ(done->bytes, 7u);
}

TEST_F(Unpack, NamesStayInside) {
  for (const char* name : {"../outside", "a/../../outside", "./../outside", "..", "a/.."}) {
    auto done = run(TestTar().file(name, "changed"));
    ASSERT_FALSE(done) << name;
    EXPECT_THAT(done.error().message, HasSubstr("climbs out")) << name;
  }
  auto absolute = run(TestTar().file("/etc/x", "inside").file("//etc//y", "inside"));
  ASSERT_TRUE(absolute) << absolute.error().message;
  EXPECT_EQ(text("etc/x"), "inside");
  EXPECT_EQ(text("etc/y"), "inside");
}

TEST_F(Unpack, LinksThatLeadOutLeadNowhere) {
  TestTar tar;
  tar.symlink("up", "..").symlink("far", base_).file("up/outside", "changed").directory(base_.substr(1));
  tar.file("far/outside", "inside");
  auto done = run(tar);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text("outside"), "changed") << "\"..\" of the root is the root";
  EXPECT_EQ(text(base_.substr(1) + "/outside"), "inside");
}

TEST_F(Unpack, LinksThatLeadOutAreNotWrittenThrough) {
  TestTar tar;
  tar.symlink("x", base_ + "/outside").file("x", "a file of its own");
  ASSERT_TRUE(run(tar));
  EXPECT_TRUE(S_ISREG(info("x").st_mode));
  for (const std::string& target : {base_ + "/outside", std::string("/etc/passwd"), std::string("nowhere")}) {
    auto done = run(TestTar().hard_link("h", target));
    ASSERT_FALSE(done) << target;
    EXPECT_THAT(done.error().message, HasSubstr("which is not there"));
  }
  auto climbing = run(TestTar().hard_link("h", "../outside"));
  ASSERT_FALSE(climbing);
  EXPECT_THAT(climbing.error().message, HasSubstr("climbs out"));
}

TEST_F(Unpack, TheLastOfTwoWins) {
  TestTar tar;
  tar.file("a", "1").file("a", "22").directory("b").file("b/c", "x").file("b", "now a file");
  tar.file("d", "file")
      .directory("d", 0711)
      .file("d/e", "y")
      .symlink("d/e", "f")
      .directory("g", 0700)
      .directory("g", 0750);
  auto done = run(tar);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text("a"), "22");
  EXPECT_EQ(text("b"), "now a file");
  EXPECT_EQ(info("d").st_mode & 07777, 0711u);
  EXPECT_TRUE(S_ISLNK(info("d/e").st_mode));
  EXPECT_EQ(info("g").st_mode & 07777, 0750u);
  for (const auto& entry : fs::directory_iterator(root_)) {
    EXPECT_EQ(entry.path().filename().string().size(), 1u) << "left in the image: " << entry.path();
  }
}

TEST_F(Unpack, ReplacedTreesOfAnyDepthAreGone) {
  TestTar tar;
  std::string deep = "t";
  for (int i = 0; i < 40; ++i) deep += "/d";
  tar.file(deep + "/f", "x").file("t", "flat");
  ASSERT_TRUE(run(tar));
  EXPECT_EQ(text("t"), "flat");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1);
}

TEST_F(Unpack, WhiteoutsBecomeTheKernels) {
  TestTar tar;
  tar.file("etc/.wh.gone", "").file("var/.wh..wh..opq", "").file("var/new", "n").file(".wh..wh.plnk/x", "");
  tar.directory("both")
      .file("both/mine", "m")
      .file(".wh.both", "")
      .file(".wh.later", "")
      .directory("later")
      .file("later/f", "l");
  tar.file("kept", "k").file(".wh.kept", "");
  auto done = run(tar);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(is_whiteout("etc/gone"));
  EXPECT_FALSE(S_ISREG(info("etc/.wh.gone").st_mode));
  EXPECT_EQ(text("later/f"), "l");
  EXPECT_EQ(text("both/mine"), "m");
  EXPECT_EQ(text("kept"), "k") << "a whiteout is for the layers below only";
  EXPECT_THAT(done->opaque, testing::UnorderedElementsAre("var", "both", "later"));
  UnpackOptions plain;
  plain.whiteouts = false;
  ASSERT_TRUE(run(TestTar().file("p/.wh.x", "a name like others"), plain));
  EXPECT_EQ(text("p/.wh.x"), "a name like others");
}

TEST_F(Unpack, WhiteoutsStayInside) {
  for (const char* name : {".wh.", ".wh..", ".wh...", "a/.wh.."})
    EXPECT_FALSE(run(TestTar().file(name, ""))) << name;
}

TEST_F(Unpack, DevicesAreLeftOut) {
  TestTar tar;
  tar.add({.name = "null", .type = '3', .content = "", .link = ""})
      .add({.name = "sda", .type = '4', .content = "", .link = ""});
  tar.add({.name = "pipe", .type = '6', .content = "", .link = ""});
  auto done = run(tar);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->devices, 2u);
  EXPECT_EQ(info("null").st_mode, 0u);
  EXPECT_TRUE(S_ISFIFO(info("pipe").st_mode));
}

TEST_F(Unpack, AttributesOfTheKernelAreRefused) {
  auto done = run(TestTar().pax("SCHILY.xattr.trusted.overlay.opaque", "y").file("a", "x"));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("trusted.overlay.opaque"));
  auto other = run(TestTar().pax("SCHILY.xattr.security.selinux", "s").file("b", "x"));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->xattrs, 1u);
}

TEST_F(Unpack, SizesAreBounded) {
  UnpackOptions small;
  small.max_bytes = 100;
  EXPECT_TRUE(run(TestTar().file("a", std::string(60, 'x')).file("b", std::string(40, 'x')), small));
  auto over = run(TestTar().file("a", std::string(60, 'x')).file("c", std::string(41, 'x')), small);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Code::too_large);
  // A hole takes no room and counts all the same.
  auto huge =
      run(TestTar().add({.name = "h", .content = "", .link = "", .claimed_size = 077777777777}), small);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, Code::too_large);
  UnpackOptions few;
  few.max_entries = 3;
  TestTar many;
  for (int i = 0; i < 4; ++i) many.directory("d" + std::to_string(i));
  auto crowd = run(many, few);
  ASSERT_FALSE(crowd);
  EXPECT_EQ(crowd.error().code, Code::too_large);
}

TEST_F(Unpack, BrokenArchives) {
  std::string good = TestTar().file("a", std::string(2000, 'x')).file("b", "y").bytes();
  EXPECT_FALSE(run(good.substr(0, 1000))) << "cut in the middle of a file";
  EXPECT_FALSE(run(std::string(4096, 'z')));
  std::string damaged = good;
  damaged[2560 + 150] ^= 7;  // the checksum of the second header
  EXPECT_FALSE(run(damaged));
  std::string long_name(300, 'n');
  EXPECT_FALSE(run(TestTar().pax("path", long_name).file("x", "")));
  EXPECT_TRUE(run(std::string())) << "an empty layer is a layer";
}

TEST_F(Unpack, NamesInUtf8) {
  auto done = run(TestTar()
                      .pax("path",
                           "gr\xc3\xbc\xc3\x9f"
                           "e")
                      .file("x", "u"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text("gr\xc3\xbc\xc3\x9f"
                 "e"),
            "u");
}

TEST(CleanEntryPath, Table) {
  EXPECT_EQ(clean_entry_path("./a//b/").value_or("?"), "a/b");
  EXPECT_EQ(clean_entry_path("/").value_or("?"), "");
  EXPECT_EQ(clean_entry_path(".").value_or("?"), "");
  EXPECT_EQ(clean_entry_path("a/..b/...").value_or("?"), "a/..b/...");
  EXPECT_FALSE(clean_entry_path(".."));
  EXPECT_FALSE(clean_entry_path("a/../b"));
  EXPECT_FALSE(clean_entry_path(std::string(256, 'x')));
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "d/";
  EXPECT_FALSE(clean_entry_path(deep));
}

}  // namespace
}  // namespace osb::image
