#include "base/cleanup.h"

#include <gmock/gmock.h>

#include <string>

namespace osb {
namespace {

TEST(Cleanup, UndoesInReverseOrder) {
  std::string log;
  {
    Cleanup undo;
    undo.push([&] { log += "1"; });
    undo.push([&] { log += "2"; });
    undo.push([&] { log += "3"; });
    EXPECT_EQ(log, "");
  }
  EXPECT_EQ(log, "321");
}

TEST(Cleanup, ReleasedStepsStay) {
  std::string log;
  {
    Cleanup undo;
    undo.push([&] { log += "1"; });
    undo.release();
    undo.push([&] { log += "2"; });
  }
  EXPECT_EQ(log, "2");
}

TEST(Cleanup, RunsOnce) {
  std::string log;
  {
    Cleanup undo;
    undo.push([&] { log += "1"; });
    undo.run();
    EXPECT_EQ(log, "1");
    undo.run();
  }
  EXPECT_EQ(log, "1");
}

TEST(Cleanup, AStepMayPushAnother) {
  std::string log;
  {
    Cleanup undo;
    undo.push([&] { log += "1"; });
    undo.push([&] {
      log += "2";
      undo.push([&] { log += "3"; });
    });
  }
  EXPECT_EQ(log, "231");
}

}  // namespace
}  // namespace osb
