#include "docker/archive.h"

#include <gtest/gtest.h>
#include <stdio.h>

#include "base/fd.h"

namespace osb::docker {
namespace {

// What tar(1) makes of it.
std::string said_by(const std::string& words, const std::string& archive) {
  char name[] = "/tmp/osb-archive-XXXXXX";
  Fd file(::mkstemp(name));
  EXPECT_TRUE(write_all(file.get(), archive));
  FILE* tar = ::popen(("tar " + words + " -f " + name + " 2>&1").c_str(), "re");
  std::string out;
  char piece[4096];
  for (size_t got; (got = ::fread(piece, 1, sizeof piece, tar)) > 0;) out.append(piece, got);
  EXPECT_EQ(::pclose(tar), 0) << out;
  ::unlink(name);
  return out;
}

TEST(Archive, is_what_tar_reads) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{511}, size_t{512}, size_t{513}, size_t{3'000'000}}) {
    std::string execd(size, 'e');
    std::string archive = archive_of({{"execd", 0755, execd}, {"a/b", 0644, "more"}});
    EXPECT_EQ(archive.size() % 512, 0u);
    EXPECT_TRUE(said_by("-xO execd", archive) == execd) << size;
    EXPECT_EQ(said_by("-xO a/b", archive), "more");
  }
  std::string line = said_by("--numeric-owner -tv", archive_of({{"execd", 0755, "hello"}}));
  EXPECT_TRUE(line.starts_with("-rwxr-xr-x 0/0 ")) << line;
  EXPECT_TRUE(line.ends_with(" execd\n")) << line;
}

}  // namespace
}  // namespace osb::docker
