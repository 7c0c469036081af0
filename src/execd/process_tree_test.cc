#include "execd/process_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace osb::execd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ListedProcess process(pid_t pid, pid_t parent, char state = 'S') {
  ListedProcess out{pid, {}};
  out.stat.parent = parent;
  out.stat.state = state;
  return out;
}

TEST(Descendants, AreFoundThroughTheirParents) {
  std::vector<ListedProcess> list = {process(1, 0),  process(5, 1),  process(9, 7),  process(7, 5),
                                     process(12, 5), process(20, 1), process(21, 20)};
  EXPECT_THAT(descendants(list, 5), ElementsAre(7, 9, 12));
  EXPECT_THAT(descendants(list, 20), ElementsAre(21));
  EXPECT_THAT(descendants(list, 9), IsEmpty());
}

TEST(Descendants, TheDeadDoNotCount) {
  EXPECT_THAT(descendants({process(5, 1), process(6, 5, 'Z'), process(7, 5, 'X'), process(8, 5, 'T')}, 5),
              ElementsAre(8));
}

TEST(Descendants, AListThatChangedWhileItWasReadEnds) {
  // A pid that was given out twice may seem to be its own ancestor.
  EXPECT_THAT(descendants({process(5, 6), process(6, 5), process(7, 7)}, 5), ElementsAre(6));
}

}  // namespace
}  // namespace osb::execd
