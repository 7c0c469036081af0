#include "sandbox/transitions.h"

#include <gtest/gtest.h>

namespace osb::sandbox {
namespace {

// The whole table: "-" is refused, "x" stays as it is, otherwise what it becomes, by way of what.
TEST(Transitions, AreThese) {
  constexpr std::string_view kExpected =
      "             start    pause          resume           exit       fail   remove   edit reach\n"
      "Pending      Running  -              -                Terminated Failed Stopping x    -\n"
      "Running      -        Pausing>Paused x                Terminated Failed Stopping x    x\n"
      "Pausing      -        -              Resuming>Running Terminated Failed Stopping x    -\n"
      "Paused       -        -              Resuming>Running Terminated Failed Stopping x    -\n"
      "Resuming     -        -              Running          Terminated Failed Stopping x    -\n"
      "Stopping     -        -              -                -          -      x        -    -\n"
      "Terminated   -        -              -                -          -      Stopping x    -\n"
      "Failed       -        -              -                -          -      Stopping x    -\n";
  constexpr std::string_view kNames[] = {"start", "pause",  "resume", "exit",
                                         "fail",  "remove", "edit",   "reach"};
  constexpr size_t kWidths[] = {9, 15, 17, 11, 7, 9, 5, 0};
  auto cell = [](std::string text, size_t width) {
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
  };
  std::string table = cell("", 13);
  for (size_t i = 0; i < std::size(kVerbs); ++i) table += cell(std::string(kNames[i]), kWidths[i]);
  table += "\n";
  for (State from : kStates) {
    table += cell(std::string(to_string(from)), 13);
    for (size_t i = 0; i < std::size(kVerbs); ++i) {
      auto found = transition(kVerbs[i], from);
      std::string text = "-";
      if (found) {
        text = found->after == from && found->during == from ? "x" : std::string(to_string(found->after));
        if (found->during != from && found->during != found->after)
          text = std::string(to_string(found->during)) + ">" + text;
      }
      table += cell(text, kWidths[i]);
    }
    table += "\n";
  }
  EXPECT_EQ(table, kExpected);
}

// After whatever sequence of allowed verbs: what is being removed stays so, what has ended never runs again.
TEST(Transitions, NothingComesBack) {
  for (State from : kStates) {
    for (Verb verb : kVerbs) {
      auto found = transition(verb, from);
      if (!found) continue;
      bool ended = from == State::terminated || from == State::failed;
      if (from == State::stopping) EXPECT_EQ(found->after, State::stopping);
      if (ended) EXPECT_TRUE(found->after == from || found->after == State::stopping);
      EXPECT_TRUE(allows(found->during, Verb::remove)) << "whatever is under way can be removed";
    }
  }
}

}  // namespace
}  // namespace osb::sandbox
