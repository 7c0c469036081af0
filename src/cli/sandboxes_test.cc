#include "cli/sandboxes.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace osb::cli {
namespace {

std::vector<json::bj::value> parse_list(std::string_view text) {
  auto value = json::parse(text);
  return {value->as_array().begin(), value->as_array().end()};
}

TEST(SandboxTable, AlignsAndCounts) {
  auto now = *parse_time("2026-01-02T03:04:05Z");
  auto list = parse_list(R"([
    {"id":"a","status":{"state":"Running"},"image":{"uri":"host"},"createdAt":"2026-01-02T03:03:00Z","expiresAt":"2026-01-02T04:04:05Z"},
    {"id":"bb","status":{"state":"Paused"},"snapshotId":"s1","createdAt":"2026-01-02T03:04:06Z"}])");
  EXPECT_EQ(sandbox_table(list, now),
            "ID  STATE    IMAGE        AGE   EXPIRES IN\n"
            "a   Running  host         1m5s  1h\n"
            "bb  Paused   snapshot s1  0s    never\n");
}

TEST(SandboxTable, SaysTheRuntimeWhereThereIsAChoice) {
  auto list =
      parse_list(R"([{"id":"a"},{"id":"b","extensions":{"opensandbox.extensions.runtime":"runsc"}}])");
  auto runtimes = [&](const ServerRuntimes& known, Columns columns, size_t count) {
    std::vector<json::bj::value> some(list.begin(), list.begin() + static_cast<ptrdiff_t>(count));
    std::string table = sandbox_table(some, WallTime{}, known, columns), out;
    for (std::string_view line : split(table, '\n'))
      out += std::string(line.substr(line.rfind(' ') + 1)) + " ";
    return out;
  };
  EXPECT_EQ(runtimes({"native", true}, Columns::needed, 2), "RUNTIME native runsc  ");
  EXPECT_EQ(runtimes({"native", true}, Columns::needed, 1), "RUNTIME native  ");
  EXPECT_EQ(runtimes({"native", false}, Columns::all, 1), "RUNTIME native  ");
  EXPECT_EQ(runtimes({"native", false}, Columns::needed, 1), "IN never  ");
  EXPECT_EQ(runtimes({}, Columns::needed, 2), "RUNTIME ? runsc  ") << "the server does not say";
}

TEST(SandboxTable, SurvivesNonsense) {
  auto list = parse_list(R"([{}, {"id":"x\u001b[2J","image":{"uri":7},"createdAt":"x","expiresAt":"y"}])");
  EXPECT_EQ(sandbox_table(list, WallTime{}),
            "ID     STATE  IMAGE       AGE  EXPIRES IN\n"
            "?      ?      snapshot ?  ?    never\n"
            "x?[2J  ?      snapshot ?  ?    ?\n");
}

TEST(SandboxTable, EmptyHasItsHeading) {
  EXPECT_EQ(sandbox_table({}, WallTime{}), "ID  STATE  IMAGE  AGE  EXPIRES IN\n");
}

}  // namespace
}  // namespace osb::cli
