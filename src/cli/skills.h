#pragma once

// `osb skills`: instructions for coding agents, carried by the executable and written where each agent looks
// for them.

#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"

namespace osb::cli {

struct Skill {
  std::string slug, title, summary;
  std::string content;  // with its front matter
  std::string body;     // without
};
std::vector<Skill> bundled_skills();

// A text between markers of its own in a file that others write, too: put in, or taken out with nullopt.
std::string with_block(std::string_view text, std::string_view slug, std::optional<std::string_view> block);

int run_skills(const SkillsOptions& options);

}  // namespace osb::cli
