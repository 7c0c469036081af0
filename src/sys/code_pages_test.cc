#include "sys/code_pages.h"

#include <gtest/gtest.h>

#include <fstream>

namespace osb::sys {
namespace {

// Pages of files that this process has in memory.
long resident_of_files() {
  std::ifstream statm("/proc/self/statm");
  long size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return shared;
}

TEST(CodePages, GoAndComeBackAsTheyAreNeeded) {
  long before = resident_of_files();
  forget_code_pages();
  long after = resident_of_files();  // what has come back on the way here is there again
  ASSERT_GT(before, 0);
  EXPECT_LT(after, before);
}

}  // namespace
}  // namespace osb::sys
