#include "sys/tree_copy.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace osb::sys {
namespace {

namespace fs = std::filesystem;

class TreeCopyTest : public testing::Test {
 protected:
  TreeCopyTest() {
    std::string pattern = testing::TempDir() + "tree_copy.XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    top_ = pattern;
    fs::create_directory(top_ / "from");
  }
  ~TreeCopyTest() override { fs::remove_all(top_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(top_ / "from" / name) << text;
  }
  std::string read(const std::string& name) {
    std::ifstream file(top_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Result<CopiedTree> copy(const std::string& to) {
    fs::create_directory(top_ / to);
    Fd from(::open((top_ / "from").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Fd into(::open((top_ / to).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return copy_tree(from.get(), into.get(), [this](const auto& dirs, const auto& copies) {
      EXPECT_EQ(dirs.size(), copies.size());
      EXPECT_LE(dirs.size(), kMostMarks);
      asked_ += dirs.size();
      return Result<std::vector<bool>>(std::vector<bool>(dirs.size(), opaque_));
    });
  }
  Result<bool> same(const std::string& one, const std::string& other) {
    Fd a(::open((top_ / one).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Fd b(::open((top_ / other).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return same_files(a.get(), b.get());
  }
  struct stat look(const std::string& name) {
    struct stat info{};
    EXPECT_EQ(::lstat((top_ / name).c_str(), &info), 0) << name;
    return info;
  }

  fs::path top_;
  size_t asked_ = 0;
  bool opaque_ = false;
};

TEST_F(TreeCopyTest, KeepsWhatFilesAre) {
  write("plain", "text");
  ::chmod((top_ / "from/plain").c_str(), 04751);
  fs::create_directories(top_ / "from/d/e");
  write("d/e/f", "deep");
  fs::create_symlink("/etc/shadow", top_ / "from/d/out");
  fs::create_hard_link(top_ / "from/plain", top_ / "from/d/same");
  ASSERT_EQ(::mkfifo((top_ / "from/pipe").c_str(), 0640), 0);
  const struct timespec times[2] = {{1, 2}, {3, 4}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (top_ / "from/d").c_str(), times, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, (top_ / "from/plain").c_str(), times, 0), 0);
  bool has_attributes = ::setxattr((top_ / "from/plain").c_str(), "user.note", "kept", 4, 0) == 0;

  auto copied = copy("to");
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_EQ(copied->entries, 7u);
  EXPECT_EQ(asked_, 3u) << "the top, d and e";
  EXPECT_EQ(read("to/d/e/f"), "deep");
  EXPECT_EQ(look("to/plain").st_mode & 07777, 04751u);
  EXPECT_EQ(look("to/plain").st_mtim.tv_nsec, 4);
  EXPECT_EQ(look("to/d").st_mtim.tv_sec, 3) << "set after what is in it";
  EXPECT_EQ(look("to/plain").st_ino, look("to/d/same").st_ino);
  EXPECT_EQ(fs::read_symlink(top_ / "to/d/out"), "/etc/shadow");
  EXPECT_TRUE(S_ISFIFO(look("to/pipe").st_mode));
  char value[8] = {};
  if (has_attributes) EXPECT_EQ(::getxattr((top_ / "to/plain").c_str(), "user.note", value, 8), 4);
  EXPECT_TRUE(same("from", "to").value());
}

TEST_F(TreeCopyTest, HolesStayHoles) {
  int fd = ::open((top_ / "from/sparse").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::pwrite(fd, "end", 3, 64 << 20), 3);
  ASSERT_EQ(::ftruncate(fd, 100 << 20), 0);
  ::close(fd);
  ASSERT_TRUE(copy("to"));
  EXPECT_EQ(look("to/sparse").st_size, 100 << 20);
  EXPECT_LT(look("to/sparse").st_blocks, 2048);
  EXPECT_TRUE(same("from", "to").value());
}

TEST_F(TreeCopyTest, TheDigestIsOfTheShape) {
  for (int i = 0; i < 50; ++i) write("f" + std::to_string(i), "x");
  auto digest = [&](const std::string& to) { return copy(to).value().digest; };
  auto before = digest("a");
  EXPECT_EQ(digest("b"), before);
  ASSERT_EQ(::chmod((top_ / "from/f7").c_str(), 0600), 0);
  EXPECT_NE(digest("c"), before);
  opaque_ = true;
  EXPECT_NE(digest("d"), before) << "marks count";
}

TEST_F(TreeCopyTest, BytesAreCompared) {
  write("f", "one");
  ASSERT_TRUE(copy("a"));
  write("f", "two");
  ASSERT_TRUE(copy("b"));
  EXPECT_FALSE(same("a", "b").value());
  fs::remove(top_ / "a/f");
  EXPECT_FALSE(same("b", "a").value());
}

TEST_F(TreeCopyTest, TooDeepIsRefused) {
  Fd at(::open((top_ / "from").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (size_t i = 0; i < kMostDepth; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    at = Fd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  auto copied = copy("to");
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message,
              testing::AnyOf(testing::HasSubstr("nested"), testing::HasSubstr("open")));
}

}  // namespace
}  // namespace osb::sys
