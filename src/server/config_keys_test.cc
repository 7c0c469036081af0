#include "server/config_keys.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "base/fd.h"
#include "base/strings.h"
#include "server/config.h"
#include "server/config_examples.h"

namespace osb::server {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// With a key, which [tenants] asks for.
const char* variable(const char* name) {
  return std::string_view(name) == "OPENSANDBOX_SERVER_API_KEY" ? "k" : nullptr;
}

Result<Config> parse(const std::string& text) { return parse_config(text, "f", variable); }

std::vector<std::string_view> names(std::string_view list) {
  return list.empty() ? std::vector<std::string_view>{} : split(list, ' ');
}

std::set<std::string> read_keys() {
  std::set<std::string> out;
  for (const KnownSection& section : known_sections()) {
    for (std::string_view name : names(section.read)) out.insert(fmt::format("{}.{}", section.name, name));
  }
  return out;
}

// No key takes a date: one that is called read, and is not looked at, would pass.
TEST(ConfigKeys, WhatIsCalledReadIsRead) {
  for (const KnownSection& section : known_sections()) {
    for (std::string_view name : names(section.read)) {
      std::string key = name == "*" ? "x" : std::string(name);
      auto config = parse(fmt::format("[{}]\n{} = 1979-05-27\n", section.name, key));
      ASSERT_FALSE(config) << section.name << "." << name;
      EXPECT_THAT(config.error().message, HasSubstr(fmt::format("f:2: {}.{}: must be", section.name, key)));
    }
  }
}

TEST(ConfigKeys, EachOfOtherServersIsOneWarning) {
  for (const KnownSection& section : known_sections()) {
    for (std::string_view name : names(section.foreign)) {
      std::string key = name == "*" ? "x" : std::string(name);
      std::string value = section.name == "secure_runtime" && name == "type" ? "\"\"" : "[1, \"x\"]";
      auto config = parse(fmt::format("[{}]\n{} = {}\n", section.name, key, value));
      ASSERT_TRUE(config) << section.name << "." << name << ": " << config.error().message;
      ASSERT_THAT(config->warnings, SizeIs(1)) << section.name << "." << name;
      std::string shown = name == "*" ? std::string(section.name) : fmt::format("{}.{}", section.name, name);
      EXPECT_THAT(config->warnings[0], HasSubstr(shown + ": ")) << config->warnings[0];
      EXPECT_THAT(config->warnings[0], HasSubstr("f:")) << config->warnings[0];
    }
  }
}

TEST(ConfigKeys, NoNameStandsTwice) {
  std::set<std::string> seen;
  for (const KnownSection& section : known_sections()) {
    for (std::string_view list : {section.read, section.foreign}) {
      for (std::string_view name : names(list)) {
        EXPECT_FALSE(name.empty()) << section.name << ": two blanks";
        EXPECT_TRUE(seen.insert(fmt::format("{}.{}", section.name, name)).second) << section.name << name;
      }
    }
  }
}

// Comments of the skeleton that are keys: "# port = 8080" below "[server]".
std::set<std::string> skeleton_keys() {
  std::set<std::string> out;
  std::string section;
  for (std::string_view line : split(*config_example(""), '\n')) {
    if (line.starts_with('[')) section = line.substr(1, line.size() - 2);
    size_t equals = line.find(" = ");
    if (!line.starts_with("# ") || equals == line.npos) continue;
    std::string name(line.substr(2, equals - 2));
    if (name.find(' ') != name.npos) continue;  // prose
    const KnownSection* known = find_section(section);
    out.insert(fmt::format("{}.{}", section, known && known->takes_any_name() ? "*" : name));
  }
  return out;
}

TEST(ConfigKeys, TheSkeletonHasEveryKeyThatIsRead) { EXPECT_EQ(skeleton_keys(), read_keys()); }

// Rows of the document: "| `server.port` | `8080` | ... |". Only keys have a dot in the first cell.
std::set<std::string> documented_keys() {
  std::set<std::string> out;
  auto text = read_file(OSB_CONFIGURATION_DOCUMENT);
  EXPECT_TRUE(text) << text.error().message;
  for (std::string_view line : split(text.value_or(""), '\n')) {
    constexpr std::string_view kStart = "| `";
    size_t end = line.find("` |");
    if (!line.starts_with(kStart) || end == line.npos) continue;
    std::string name(line.substr(kStart.size(), end - kStart.size()));
    if (name.find('.') != name.npos) out.insert(name);
  }
  return out;
}

TEST(ConfigKeys, TheDocumentHasEveryKeyThatIsRead) { EXPECT_EQ(documented_keys(), read_keys()); }

TEST(ConfigKeys, OurOwnExamplesHaveNoUnknownKey) {
  for (std::string_view name : config_example_names()) {
    auto config = parse(std::string(*config_example(name)));
    ASSERT_TRUE(config) << name << ": " << config.error().message;
  }
  EXPECT_THAT(parse(std::string(*config_example("native")))->warnings, IsEmpty());
}

TEST(ConfigKeys, AGuessIsCloseOrNotMade) {
  EXPECT_EQ(suggest_key("server", "prot"), "did you mean `port`?");
  EXPECT_EQ(suggest_key("server", "max_sandbox_timeout"), "did you mean `max_sandbox_timeout_seconds`?");
  EXPECT_THAT(suggest_key("server", "x"), HasSubstr("the keys there are host, port"));
  EXPECT_THAT(suggest_key("server", std::string(5000, 'a')), HasSubstr("the keys there are"));
  EXPECT_EQ(suggest_section("Native"), "did you mean [native]?");
  EXPECT_EQ(suggest_section("images"),
            "the sections are server, log, runtime, native, native.images, "
            "native.image_aliases, registry, registry.mirrors, proxy, sandbox, store, egress, renew_intent");
  EXPECT_THAT(shown_name(std::string(5000, 'a')), SizeIs(63));
}

}  // namespace
}  // namespace osb::server
