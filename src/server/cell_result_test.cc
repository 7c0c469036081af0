#include "server/cell_result.h"

#include <gtest/gtest.h>

namespace osb::server {
namespace {

TEST(CellResult, CollectsWhateverThePieces) {
  std::string stream = R"({"type":"init","text":"c1"})"
                       "\n\n"
                       R"({"type":"stdout","text":"a\n"})"
                       "\n\n"
                       R"({"type":"stderr","text":"w"})"
                       "\n\n"
                       R"({"type":"stdout","text":"b"})"
                       "\n\n"
                       R"({"type":"result","results":{"text/plain":"42"}})"
                       "\n\n"
                       R"({"type":"execution_complete","execution_time":7})"
                       "\n\n";
  for (size_t piece : {size_t{1}, size_t{7}, stream.size()}) {
    CellResult result;
    for (size_t at = 0; at < stream.size(); at += piece) ASSERT_TRUE(result.feed(stream.substr(at, piece)));
    EXPECT_TRUE(result.complete());
    EXPECT_EQ(result.to_json(), R"({"stdout":"a\nb","stderr":"w","result":"42","executionTime":7})");
  }
}

TEST(CellResult, AnErrorIsToldWithItsLines) {
  CellResult result;
  ASSERT_TRUE(result.feed(R"({"type":"error","error":{"ename":"E","evalue":"v","traceback":["one","two"]}})"
                          "\n"));
  EXPECT_TRUE(result.complete());
  EXPECT_EQ(result.to_json(),
            R"({"stdout":"","stderr":"","error":{"name":"E","value":"v","traceback":["one","two"]}})");
}

TEST(CellResult, AnErrorTookTheTimeBetweenItsEvents) {
  auto said = [](const char* began, const char* ended) {
    CellResult result;
    EXPECT_TRUE(result.feed(R"({"type":"init","timestamp":)" + std::string(began) + "}\n"));
    EXPECT_TRUE(result.feed(R"({"type":"error","error":{},"timestamp":)" + std::string(ended) + "}\n"));
    return result.to_json();
  };
  EXPECT_NE(said("1000", "1042").find("\"executionTime\":42"), std::string::npos);
  // A clock that was set, or a liar's.
  for (const char* before : {"999", "-9223372036854775807"})
    EXPECT_EQ(said("1000", before).find("executionTime"), std::string::npos) << before;
  EXPECT_EQ(said("-9223372036854775807", "9223372036854775807").find("executionTime"), std::string::npos);
}

TEST(CellResult, OutputIsBounded) {
  CellResult result;
  std::string line = R"({"type":"stdout","text":")" + std::string(3 << 20, 'x') + "\"}\n";
  ASSERT_TRUE(result.feed(line));
  ASSERT_TRUE(result.feed(line));
  std::string json = result.to_json();
  EXPECT_LT(json.size(), CellResult::kMaxText + 100);
  EXPECT_NE(json.find("\"truncated\":true"), std::string::npos);
}

TEST(CellResult, WhatIsNoStreamIsRefused) {
  for (const char* bytes : {"no json\n", "[1]\n", "{\"type\":1}\n", "{\"type\":\"stdout\",\"text\":{}}\n",
                            "{\"type\":\"error\",\"error\":{\"traceback\":[1]}}\n", "{\n"}) {
    CellResult result;
    auto fed = result.feed(bytes);
    EXPECT_FALSE(fed) << bytes;
  }
  CellResult endless;
  EXPECT_FALSE(endless.feed(std::string(CellResult::kMaxLine + 1, 'x')));
}

}  // namespace
}  // namespace osb::server
