#include "cli/log_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace osb::cli {
namespace {

std::string copied(const std::string& text) {
  std::string path = testing::TempDir() + "log_file_test." + std::to_string(::getpid());
  std::filesystem::remove(path);
  auto file = RotatingFile::open({.path = path});
  EXPECT_TRUE(file) << file.error().message;
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  Fd from(ends[0]), to(ends[1]);
  EXPECT_GE(::fcntl(to.get(), F_SETPIPE_SZ, 1 << 20), 1 << 20);
  EXPECT_TRUE(write_all(to.get(), text));
  to.reset();
  copy_lines(from.get(), *file);
  std::string out = read_file(path).value_or("(none)");
  std::filesystem::remove(path);
  return out;
}

TEST(LogFile, LinesAreCopiedAsTheyAre) {
  EXPECT_EQ(copied(""), "");
  EXPECT_EQ(copied("a\n\nb\n"), "a\n\nb\n");
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "line " + std::to_string(i) + "\n";
  EXPECT_EQ(copied(many), many);
}

TEST(LogFile, WhatHasNoEndGetsOne) {
  EXPECT_EQ(copied("a\nunfinished"), "a\nunfinished\n");
  std::string endless = copied(std::string(200 << 10, 'x'));
  EXPECT_GT(endless.size(), size_t{200 << 10});
  EXPECT_LT(endless.find('\n'), size_t{100 << 10}) << "nobody keeps it all";
}

}  // namespace
}  // namespace osb::cli
