#include "base/fd.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace osb {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

struct InDirectory : testing::Test {
  InDirectory() {
    std::string name = testing::TempDir() + "fd_test.XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path = name;
    dir = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY).value();
  }
  ~InDirectory() override { std::filesystem::remove_all(path); }

  std::string path;
  Fd dir;
};

TEST(Fd, OwnsItsDescriptor) {
  int number;
  {
    Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = fd.get();
    EXPECT_TRUE(fd.valid());
    Fd moved = std::move(fd);
    EXPECT_FALSE(fd.valid());  // NOLINT(bugprone-use-after-move): this is the promise
    EXPECT_EQ(moved.get(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Fd, AssignmentClosesTheOldOne) {
  Fd a(::open("/dev/null", O_RDONLY | O_CLOEXEC)), b(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int old = a.get(), kept = b.get();
  a = std::move(b);
  EXPECT_FALSE(is_open(old));
  EXPECT_EQ(a.get(), kept);
  Fd& same = a;
  a = std::move(same);
  EXPECT_TRUE(is_open(kept));
  int released = a.release();
  EXPECT_FALSE(a.valid());
  EXPECT_TRUE(is_open(released));
  Fd(released).reset();
  EXPECT_FALSE(is_open(released));
}

TEST_F(InDirectory, EveryDescriptorIsCloseOnExec) {
  ASSERT_TRUE(write_file_at(dir.get(), "f", "x", O_CREAT));
  EXPECT_TRUE(::fcntl(open_at(dir.get(), "f", O_RDONLY).value().get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_TRUE(::fcntl(open_beneath(dir.get(), "f", O_RDONLY).value().get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(InDirectory, ReadsAndWritesWholeFiles) {
  std::string big(300'000, 'x');
  big[7] = '\0';
  ASSERT_TRUE(write_file(path + "/big", big, O_CREAT | O_EXCL, 0600));
  EXPECT_EQ(read_file(path + "/big").value(), big);
  struct stat st;
  ASSERT_EQ(::stat((path + "/big").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  ASSERT_TRUE(write_file(path + "/big", "y", O_TRUNC));
  EXPECT_EQ(read_file(path + "/big").value(), "y");
  EXPECT_EQ(write_file(path + "/none", "y").error().code, Code::not_found);
  EXPECT_EQ(read_file(path + "/none").error().code, Code::not_found);
  EXPECT_THAT(read_file(path).error().message, testing::HasSubstr(path));
}

TEST_F(InDirectory, ReadingIsBounded) {
  for (size_t size : {0u, 1u, 4095u, 4096u, 4097u, 70'000u}) {
    ASSERT_TRUE(write_file(path + "/f", std::string(size, 'x'), O_CREAT | O_TRUNC));
    EXPECT_EQ(read_file(path + "/f", size).value().size(), size);
    if (size > 0) {
      EXPECT_EQ(read_file(path + "/f", size - 1).error().code, Code::too_large) << size;
    }
  }
  EXPECT_EQ(read_file("/dev/zero", 1000).error().code, Code::too_large);
}

TEST_F(InDirectory, BeneathOpensWhatIsThere) {
  std::filesystem::create_directories(path + "/a/b");
  ASSERT_TRUE(write_file(path + "/a/b/f", "hello", O_CREAT));
  EXPECT_EQ(read_all(open_beneath(dir.get(), "a/b/f", O_RDONLY).value().get()).value(), "hello");
  EXPECT_EQ(read_all(open_beneath(dir.get(), "a/./b//f", O_RDONLY).value().get()).value(), "hello");
  EXPECT_TRUE(open_beneath(dir.get(), "a/b", O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(open_beneath(dir.get(), "a/b", O_RDONLY | O_DIRECTORY, 0755))
      << "a mode that is not needed does no harm";
  EXPECT_TRUE(open_beneath(dir.get(), ".", O_RDONLY | O_DIRECTORY));
  Fd made = open_beneath(dir.get(), "a/new", O_WRONLY | O_CREAT | O_EXCL, 0640).value();
  struct stat st;
  ASSERT_EQ(::fstat(made.get(), &st), 0);
  EXPECT_EQ(
      st.st_mode & 0777, 0640u & ~[] {
        mode_t mask = ::umask(0);
        ::umask(mask);
        return mask;
      }());
  EXPECT_EQ(open_beneath(dir.get(), "a/none", O_RDONLY).error().code, Code::not_found);
  EXPECT_EQ(open_beneath(dir.get(), "a/new", O_WRONLY | O_CREAT | O_EXCL, 0640).error().code,
            Code::already_exists);
}

TEST_F(InDirectory, BeneathRefusesToLeave) {
  std::filesystem::create_directories(path + "/in/sub");
  ASSERT_TRUE(write_file(path + "/secret", "s", O_CREAT));
  Fd in = open_at(dir.get(), "in", O_RDONLY | O_DIRECTORY).value();
  for (const std::string& name :
       {std::string("../secret"), std::string("sub/../../secret"), std::string(".."), path + "/secret",
        std::string("/etc/passwd"), std::string("/")}) {
    auto fd = open_beneath(in.get(), name, O_RDONLY);
    ASSERT_FALSE(fd) << name;
    EXPECT_EQ(fd.error().sys_errno, EXDEV) << name;
    EXPECT_EQ(fd.error().code, Code::invalid_argument) << name;
    EXPECT_FALSE(open_beneath(in.get(), name, O_WRONLY | O_CREAT, 0644)) << name;
  }
  EXPECT_FALSE(open_beneath(in.get(), "", O_RDONLY));
}

TEST_F(InDirectory, BeneathFollowsNoSymlink) {
  std::filesystem::create_directories(path + "/real");
  ASSERT_TRUE(write_file(path + "/real/f", "x", O_CREAT));
  ASSERT_EQ(::symlink("real", (path + "/dirlink").c_str()), 0);
  ASSERT_EQ(::symlink("real/f", (path + "/filelink").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", (path + "/absolute").c_str()), 0);
  ASSERT_EQ(::symlink("missing", (path + "/dangling").c_str()), 0);
  ASSERT_EQ(::symlink("loop", (path + "/loop").c_str()), 0);
  for (const char* name : {"dirlink/f", "dirlink/../real/f", "filelink", "absolute", "dangling", "loop"}) {
    auto fd = open_beneath(dir.get(), name, O_RDONLY);
    ASSERT_FALSE(fd) << name;
    EXPECT_EQ(fd.error().sys_errno, ELOOP) << name;
  }
  EXPECT_FALSE(open_beneath(dir.get(), "dangling", O_WRONLY | O_CREAT, 0644));
  EXPECT_FALSE(std::filesystem::exists(path + "/missing")) << "nothing is created through a link";
  // The links of /proc lead anywhere, too.
  Fd proc = open_at(AT_FDCWD, "/proc/self", O_RDONLY | O_DIRECTORY).value();
  EXPECT_FALSE(open_beneath(proc.get(), "root/etc/passwd", O_RDONLY));
  EXPECT_FALSE(open_beneath(proc.get(), "fd/" + std::to_string(dir.get()), O_RDONLY));
}

TEST(WriteAll, TellsWhyItFailed) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]), writer(ends[1]);
  ASSERT_TRUE(write_all(writer.get(), ""));
  ASSERT_TRUE(write_all(writer.get(), "abc"));
  writer.reset();
  EXPECT_EQ(read_all(reader.get()).value(), "abc");
  auto result = write_all(reader.get(), "x");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sys_errno, EBADF);
}

}  // namespace
}  // namespace osb
