#include "docker/original_notes.h"

#include <gtest/gtest.h>

namespace osb::docker {
namespace {

using Map = std::map<std::string, std::string>;

TEST(OriginalNotes, FilesOfOneSandbox) {
  auto note = parse_note(R"({"team":"blue","b":""})", R"({"expires_at":"2026-01-02T03:04:05.000001+00:00"})");
  EXPECT_EQ(note.metadata, (Map{{"team", "blue"}, {"b", ""}}));
  EXPECT_EQ(note.expires, *parse_time("2026-01-02T03:04:05.000001Z"));
  EXPECT_EQ(parse_note("{}", "").metadata, Map()) << "everything was taken off";
}

TEST(OriginalNotes, WhatCannotBeReadSaysNothing) {
  for (const char* odd : {"", "[]", "7", "{", R"({"a":1})", R"({"a":null})", R"({"a":{"b":"c"}})", "\xff"})
    EXPECT_FALSE(parse_note(odd, "").metadata) << odd;
  for (const char* odd :
       {"", "[]", "{}", R"({"expires_at":7})", R"({"expires_at":"soon"})", R"({"expires_at":null})"})
    EXPECT_FALSE(parse_note("", odd).expires) << odd;
}

TEST(OriginalNotes, AsOneTextAndBack) {
  OriginalNotes notes = {
      {"a", {.metadata = Map{{"k", "v\n\"x\""}}, .expires = *parse_time("2026-01-02T03:04:05Z")}},
      {"b", {.metadata = Map()}},
      {"c", {}}};
  auto back = parse_notes(print_notes(notes));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 3u);
  EXPECT_EQ(back->at("a").metadata, notes["a"].metadata);
  EXPECT_EQ(back->at("a").expires, notes["a"].expires);
  EXPECT_EQ(back->at("b").metadata, Map());
  EXPECT_FALSE(back->at("c").metadata || back->at("c").expires);
  for (const char* odd : {"", "[]", "7", R"({"a":7})"}) EXPECT_FALSE(parse_notes(odd)) << odd;
}

TEST(OriginalNotes, TheyCountMoreThanLabels) {
  runtime::Inherited one{.id = "a", .image = "i", .metadata = {{"team", "red"}}};
  runtime::Inherited other = one;
  other.id = "b";
  OriginalNotes notes = {
      {"a", {.metadata = Map{{"team", "blue"}}, .expires = *parse_time("2026-01-02T03:04:05Z")}}};
  apply_note(notes, one);
  apply_note(notes, other);
  EXPECT_EQ(one.metadata, (Map{{"team", "blue"}}));
  EXPECT_EQ(one.expires, *parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(other.metadata, (Map{{"team", "red"}}));
  EXPECT_FALSE(other.expires);
}

}  // namespace
}  // namespace osb::docker
