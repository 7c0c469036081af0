#include "execd/page_pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace osb::execd {
namespace {

Fd file_of(const std::string& content) {
  Fd file(::memfd_create("page-pipe", MFD_CLOEXEC));
  EXPECT_TRUE(write_all(file.get(), content));
  return file;
}

std::string numbers(size_t size) {
  std::string text;
  for (int i = 0; text.size() < size; ++i) text += std::to_string(i) + " ";
  text.resize(size);
  return text;
}

std::string drain(PagePipe& pipe) {
  std::string out(pipe.size, '\0');
  size_t done = 0;
  while (done < out.size()) {
    ssize_t n = ::read(pipe.reader(), out.data() + done, out.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  char more;
  EXPECT_LT(::read(pipe.reader(), &more, 1), 0) << "the pipe holds more than it says";
  return out;
}

TEST(PagePipe, GivesAFileInTurns) {
  const std::string content = numbers(2'500'000);
  Fd file = file_of(content);
  for (size_t start : {size_t{0}, size_t{4096}, size_t{4097}, size_t{1'234'567}}) {
    PagePipe pipe;
    std::string seen;
    while (true) {
      ASSERT_TRUE(pipe.fill(file.get(), start + seen.size(), PagePipe::kCapacity));
      if (pipe.size == 0) break;
      seen += drain(pipe);
    }
    EXPECT_EQ(seen, content.substr(start)) << "from " << start;
  }
}

TEST(PagePipe, StopsAtTheLimitAndWhenItIsFull) {
  const std::string content = numbers(2'500'000);
  Fd file = file_of(content);
  PagePipe pipe;
  ASSERT_TRUE(pipe.fill(file.get(), 7, 10));
  EXPECT_EQ(drain(pipe), content.substr(7, 10));
  ASSERT_TRUE(pipe.fill(file.get(), 1, content.size()));  // more than there is room for
  EXPECT_GT(pipe.size, 0u);
  EXPECT_LE(pipe.size, PagePipe::kCapacity);
  size_t size = pipe.size;
  EXPECT_EQ(drain(pipe), content.substr(1, size));
}

TEST(PagePipe, AShorterFileIsSeen) {
  Fd file = file_of(numbers(100'000));
  PagePipe pipe;
  ASSERT_EQ(::ftruncate(file.get(), 50'000), 0);
  ASSERT_TRUE(pipe.fill(file.get(), 40'000, 60'000));
  EXPECT_EQ(pipe.size, 10'000u);
  drain(pipe);
  ASSERT_TRUE(pipe.fill(file.get(), 50'000, 50'000));
  EXPECT_EQ(pipe.size, 0u);
}

TEST(PagePipe, RefusesWhatIsNoFile) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd reader(ends[0]), writer(ends[1]);
  PagePipe pipe;
  EXPECT_FALSE(pipe.fill(reader.get(), 0, 10));
  EXPECT_FALSE(pipe.fill(-1, 0, 10));
}

}  // namespace
}  // namespace osb::execd
