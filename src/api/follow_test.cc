#include "api/follow.h"

#include <gtest/gtest.h>

namespace osb::api {
namespace {

using sandbox::State;

TEST(WaitQuery, TakesStatesInEverySpelling) {
  auto query = decode_wait_query("state=Running,%20paused&state=FAILED&timeout=7");
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_TRUE(query->wants(State::running) && query->wants(State::paused) && query->wants(State::failed));
  EXPECT_FALSE(query->wants(State::terminated));
  EXPECT_EQ(query->timeout, std::chrono::seconds(7));
  EXPECT_EQ(decode_wait_query("state=Running")->timeout, std::chrono::seconds(25));
}

TEST(WaitQuery, RefusesWhatMeansNothing) {
  for (const char* query :
       {"", "timeout=1", "state=", "state=Running,", "state=Run", "state=Running&timeout=-1",
        "state=Running&timeout=301", "state=Running&timeout=1.5", "state=Running&timeout="})
    EXPECT_FALSE(decode_wait_query(query)) << query;
}

TEST(LastEventId, ComesFromTheFieldOrTheQuery) {
  EXPECT_EQ(**decode_last_event_id("12", ""), 12);
  EXPECT_EQ(**decode_last_event_id("", "lastEventId=13"), 13);
  EXPECT_EQ(**decode_last_event_id("12", "lastEventId=13"), 12);
  EXPECT_EQ(**decode_last_event_id(" 0 ", ""), 0);
  EXPECT_FALSE(decode_last_event_id("", "")->has_value());
  for (const char* id : {"-1", "x", "1x", "99999999999999999999", "1,2", "0x1"})
    EXPECT_FALSE(decode_last_event_id(id, "")) << id;
}

TEST(StreamedEvent, OneFrameWithWhatFollowsFromIt) {
  sandbox::Event ended{WallTime{}, "Ended", "OUT_OF_MEMORY: out of \"memory\"\nline"};
  std::string out;
  append_event(out, {7, "id1", ended});
  EXPECT_EQ(out,
            "id: 7\nevent: Ended\ndata: {\"sandboxId\":\"id1\",\"type\":\"Ended\",\"state\":\"Failed\","
            "\"reason\":\"OUT_OF_MEMORY\",\"message\":\"OUT_OF_MEMORY: out of \\\"memory\\\"\\nline\","
            "\"at\":\"1970-01-01T00:00:00Z\"}\n\n");
  out.clear();
  append_event(out, {8, "id1", {WallTime{}, "Ended", "ENTRYPOINT_EXITED: x"}});
  EXPECT_NE(out.find("\"state\":\"Terminated\""), out.npos);
  out.clear();
  append_event(out, {9, "id1", {WallTime{}, "Deleted", "DELETED: x"}});
  EXPECT_EQ(out.find("\"state\""), out.npos) << "one that is gone has none";
}

}  // namespace
}  // namespace osb::api
