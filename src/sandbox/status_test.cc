#include "sandbox/status.h"

#include <gtest/gtest.h>

namespace osb::sandbox {
namespace {

TEST(States, HaveTheirWords) {
  EXPECT_EQ(to_string(State::running), "Running");
  EXPECT_EQ(state_from("rUNNING"), State::running);
  EXPECT_EQ(state_from("Unknown"), std::nullopt);
  EXPECT_EQ(state_from(""), std::nullopt);
  for (State state : kStates) EXPECT_EQ(state_from(to_string(state)), state);
}

// Stored in rows and shown to clients: a word that changes breaks both.
TEST(Reasons, HaveTheirWords) {
  const std::pair<Reason, const char*> words[] = {
      {Reason::none, ""},
      {Reason::starting, "STARTING"},
      {Reason::running, "RUNNING"},
      {Reason::pausing, "PAUSING"},
      {Reason::paused, "PAUSED"},
      {Reason::resuming, "RESUMING"},
      {Reason::deleted, "DELETED"},
      {Reason::expired, "EXPIRED"},
      {Reason::entrypoint_exited, "ENTRYPOINT_EXITED"},
      {Reason::entrypoint_failed, "ENTRYPOINT_FAILED"},
      {Reason::killed_by_signal, "KILLED_BY_SIGNAL"},
      {Reason::out_of_memory, "OUT_OF_MEMORY"},
      {Reason::host_restarted, "HOST_RESTARTED"},
      {Reason::lost, "LOST"},
      {Reason::start_failed, "START_FAILED"},
      {Reason::damaged, "DAMAGED"},
      {Reason::idle, "IDLE"},
  };
  for (auto [reason, word] : words) {
    EXPECT_EQ(to_string(reason), word);
    EXPECT_EQ(reason_from(word), reason);
  }
  EXPECT_EQ(reason_from("running"), std::nullopt);
  EXPECT_EQ(reason_from("SOMETHING"), std::nullopt);
  EXPECT_EQ(std::size(words), static_cast<size_t>(Reason::idle) + 1) << "one of them is not in the table";
}

TEST(Status, FollowsFromTheStateWhileNothingIsWrong) {
  Status status = status_while(State::paused, WallTime(std::chrono::seconds(5)));
  EXPECT_EQ(status.state, State::paused);
  EXPECT_EQ(status.reason, Reason::paused);
  EXPECT_FALSE(status.message.empty());
  EXPECT_EQ(status.changed, WallTime(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace osb::sandbox
