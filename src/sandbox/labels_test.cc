#include "sandbox/labels.h"

#include <gtest/gtest.h>

namespace osb::sandbox {
namespace {

TEST(Labels, AcceptsWhatTheRulesAllow) {
  std::string longest(63, 'a'), prefix(253, 'a');
  const std::pair<std::string, std::string> accepted[] = {
      {"team", "t1"},       {"team", ""},       {"Team_A.b-c", "X.y_z-0"},
      {"a", "b"},           {"0", "9"},         {"example.com/name", "v"},
      {"a-b.c0/Name", "v"}, {longest, longest}, {prefix + "/name", "v"},
  };
  for (const auto& [key, value] : accepted) {
    auto result = check_metadata({{key, value}});
    EXPECT_TRUE(result) << key << "=" << value << ": " << result.error().message;
  }
}

TEST(Labels, RefusesTheRest) {
  std::string too_long(64, 'a');
  const std::pair<std::string, std::string> refused[] = {
      {"", "v"},
      {" ", "v"},
      {"-a", "v"},
      {"a-", "v"},
      {".a", "v"},
      {"a_", "v"},
      {"a b", "v"},
      {"a\n", "v"},  // a regular expression with $ would let it through
      {"\xc3\xa4", "v"},
      {too_long, "v"},
      {"/name", "v"},
      {"prefix/", "v"},
      {"a/b/c", "v"},
      {"Upper.com/name", "v"},
      {"-x.com/name", "v"},
      {"x-.com/name", "v"},
      {"x..com/name", "v"},
      {"under_score/name", "v"},
      {std::string(254, 'a') + "/name", "v"},
      {"k", "-v"},
      {"k", "v."},
      {"k", "two words"},
      {"k", "v\n"},
      {"k", "a/b"},
      {"k", too_long},
      {"k", std::string("a\0b", 3)},
      {"opensandbox.io/x", "v"},
      {"opensandbox.io/", "v"},
  };
  for (const auto& [key, value] : refused) {
    auto result = check_metadata({{key, value}});
    ASSERT_FALSE(result) << key << "=" << value;
    EXPECT_EQ(result.error().kind, Failure::Kind::invalid);
    EXPECT_EQ(result.error().code, "SANDBOX::INVALID_METADATA_LABEL");
  }
}

TEST(Labels, BoundsTheNumberOfPairs) {
  Metadata metadata;
  for (size_t i = 0; i < kMaxLabels; ++i) metadata.emplace("k" + std::to_string(i), "v");
  EXPECT_TRUE(check_metadata(metadata));
  metadata.emplace("one-more", "v");
  EXPECT_FALSE(check_metadata(metadata));
}

}  // namespace
}  // namespace osb::sandbox
