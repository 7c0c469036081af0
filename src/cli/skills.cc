#include "cli/skills.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"
#include "cli/api_error.h"
#include "cli/output.h"
#include "json/decode.h"

#define OSB_SKILLS(X)        \
  X(sandbox_troubleshooting) \
  X(sandbox_lifecycle)       \
  X(command_execution)       \
  X(file_operations)         \
  X(network_egress)

extern "C" {
#define OSB_DECLARE(name) extern const char osb_skill_##name[], osb_skill_##name##_end[];
OSB_SKILLS(OSB_DECLARE)
#undef OSB_DECLARE
}

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxFile = 4 << 20;

struct Target {
  std::string_view name, label;
  enum class Layout { file, folder, plain, block } layout;
  std::string_view path;  // below the project or the home directory; "" before the slug
};
using Layout = Target::Layout;
constexpr Target kTargets[] = {
    {"claude", "Claude Code", Layout::file, ".claude/skills/"},
    {"cursor", "Cursor", Layout::plain, ".cursor/rules/"},
    {"codex", "Codex", Layout::folder, ".codex/skills/"},
    {"copilot", "GitHub Copilot", Layout::block, ".github/copilot-instructions.md"},
    {"windsurf", "Windsurf", Layout::block, ".windsurfrules"},
    {"cline", "Cline", Layout::block, ".clinerules"},
    {"opencode", "OpenCode", Layout::folder, ".agents/skills/"},
};

std::string path_of(const Target& target, const std::string& slug) {
  std::string path(target.path);
  if (target.layout == Layout::file) return path + slug + ".md";
  if (target.layout == Layout::plain) return path + slug + ".mdc";
  return target.layout == Layout::folder ? path + slug + "/SKILL.md" : path;
}

Skill read_skill(std::string_view text) {
  Skill skill;
  skill.content = text;
  size_t end = text.find("\n---\n", 4);
  std::string_view head = text.substr(0, end);
  auto field = [&](std::string_view name) {
    size_t at = head.find(name);
    std::string_view rest = head.substr(at + name.size());
    return std::string(trim(rest.substr(0, rest.find('\n'))));
  };
  skill.slug = field("\nname:");
  skill.summary = field("\ndescription:");
  skill.body = trim(text.substr(end + 5));
  skill.body += '\n';
  skill.title = skill.body.substr(2, skill.body.find('\n') - 2);
  return skill;
}

// The text below a heading, up to the next one; "" when there is none.
std::string section_of(const Skill& skill, std::string_view heading) {
  std::string begin = fmt::format("\n## {}\n", heading);
  size_t at = skill.body.find(begin);
  if (at == std::string::npos) return "";
  std::string_view rest = std::string_view(skill.body).substr(at + begin.size());
  return std::string(trim(rest.substr(0, rest.find("\n## "))));
}

bj::array points_of(const Skill& skill, std::string_view heading) {
  bj::array out;
  std::string text = section_of(skill, heading);
  for (std::string_view line : split(text, '\n'))
    if (line.starts_with("- ")) out.emplace_back(std::string(trim(line.substr(2))));
  return out;
}

// What sets an agent off: the last sentence of the summary says it.
std::string hint_of(const Skill& skill) {
  size_t at = skill.summary.find("Use when ");
  return at == std::string::npos ? skill.summary : skill.summary.substr(at);
}

std::string area_of(const Skill& skill) { return skill.slug.substr(0, skill.slug.find('-')); }

std::string_view layout_of(const Target& target) {
  switch (target.layout) {
    case Layout::folder:
      return "directory";
    case Layout::block:
      return "append";
    case Layout::file:
    case Layout::plain:
      break;
  }
  return "file";
}

// Absent is empty.
Result<std::string> read_existing(const std::string& path) {
  auto text = read_file(path, kMaxFile);
  if (!text && text.error().code == Code::not_found) return std::string();
  return text;
}

Result<std::string> base_of(const SkillsOptions& options) {
  if (options.scope == "project") return std::string();
  const char* home = ::getenv("HOME");
  if (!home || !*home) return fail(Code::not_found, "HOME is not set; use --scope project");
  return std::string(home) + "/";
}

// What the file has to be for the skill to be there.
std::string wanted_text(const Target& target, const Skill& skill, const std::string& before) {
  if (target.layout == Layout::block) return with_block(before, skill.slug, skill.body);
  return target.layout == Layout::plain ? skill.body : skill.content;
}

Result<std::string> install(const Target& target, const Skill& skill, const std::string& path) {
  std::string before = TRY(read_existing(path));
  std::string after = wanted_text(target, skill, before);
  if (before == after) return "already_present";
  std::error_code error;
  auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty() && !std::filesystem::create_directories(parent, error) && error)
    return fail_errno("make " + parent.string(), error.value());
  TRY(write_file(path, after, O_CREAT | O_TRUNC, 0644));
  bool had = target.layout == Layout::block ? with_block(before, skill.slug, {}) != before : !before.empty();
  return had ? "updated" : "installed";
}

Result<std::string> uninstall(const Target& target, const Skill& skill, const std::string& path) {
  std::string before = TRY(read_existing(path));
  std::string after = target.layout == Layout::block ? with_block(before, skill.slug, {}) : "";
  if (before == after) return "not_installed";
  if (!after.empty()) {
    TRY(write_file(path, after, O_TRUNC, 0644));
    return "removed";
  }
  if (::unlink(path.c_str()) < 0) return fail_errno("remove " + path);
  if (target.layout == Layout::folder) ::rmdir(std::filesystem::path(path).parent_path().c_str());
  return "removed";
}

Result<bj::object> change(const SkillsOptions& options) {
  bj::array operations;
  std::string base = TRY(base_of(options));
  for (const Target& target : kTargets) {
    if (options.target != "all" && options.target != target.name) continue;
    for (const Skill& skill : bundled_skills()) {
      if (!options.all && skill.slug != options.name) continue;
      std::string path = path_of(target, skill.slug);
      bool in = options.what == SkillsOptions::What::install;
      std::string status =
          TRY(in ? install(target, skill, base + path) : uninstall(target, skill, base + path));
      operations.push_back(bj::object{{"skill", skill.slug},
                                      {"target", target.name},
                                      {"target_label", target.label},
                                      {"scope", options.scope},
                                      {"path", base + path},
                                      {"status", status},
                                      {"requires_restart", true}});
    }
  }
  return bj::object{{"operations", std::move(operations)}, {"requires_restart", true}};
}

Result<bj::object> list(const SkillsOptions&) {
  bj::array skills, targets;
  for (const Skill& skill : bundled_skills())
    skills.push_back(bj::object{{"slug", skill.slug},
                                {"title", skill.title},
                                {"summary", skill.summary},
                                {"trigger_hint", hint_of(skill)},
                                {"area", area_of(skill)},
                                {"source_path", fmt::format("skills/{}.md", skill.slug)}});
  for (std::string scope : {"project", "global"}) {
    auto base = base_of({.scope = scope});
    if (!base) continue;
    for (const Target& target : kTargets) {
      bj::array states;
      for (const Skill& skill : bundled_skills()) {
        std::string path = *base + path_of(target, skill.slug);
        std::string before = read_existing(path).value_or("");
        bool there =
            target.layout == Layout::block ? with_block(before, skill.slug, {}) != before : !before.empty();
        states.push_back(bj::object{
            {"skill", skill.slug}, {"status", there ? "installed" : "not_installed"}, {"path", path}});
      }
      targets.push_back(bj::object{{"target", target.name},
                                   {"scope", scope},
                                   {"label", target.label},
                                   {"layout", layout_of(target)},
                                   {"skills", std::move(states)}});
    }
  }
  return bj::object{{"skills", std::move(skills)}, {"targets", std::move(targets)}};
}

Result<bj::object> show(const SkillsOptions& options) {
  for (const Skill& skill : bundled_skills())
    if (skill.slug == options.name)
      return bj::object{{"skill", skill.slug},
                        {"title", skill.title},
                        {"area", area_of(skill)},
                        {"summary", skill.summary},
                        {"trigger_hint", hint_of(skill)},
                        {"when_to_use", points_of(skill, "When To Use")},
                        {"quick_start", section_of(skill, "Quick Start")},
                        {"json_shapes", points_of(skill, "JSON Shapes")},
                        {"content", skill.content}};
  return fail(Code::not_found, "there is no such skill; see: osb skills list");
}

std::string text_member(const bj::value& value, std::string_view name) {
  return std::string(value.as_object().at(name).as_string());
}

void print_for_people(const SkillsOptions& options, const bj::object& result) {
  if (options.what == SkillsOptions::What::show) {
    fmt::print("{}", text_member(result, "content"));
  } else if (options.what == SkillsOptions::What::list) {
    for (const bj::value& one : result.at("skills").as_array())
      fmt::print("{:<26}{}\n", text_member(one, "slug"), text_member(one, "summary"));
  } else {
    for (const bj::value& one : result.at("operations").as_array())
      fmt::print("{:<16}{}\n", text_member(one, "status"), text_member(one, "path"));
  }
}

}  // namespace

std::vector<Skill> bundled_skills() {
  std::vector<Skill> out;
#define OSB_READ(name) out.push_back(read_skill({osb_skill_##name, osb_skill_##name##_end}));
  OSB_SKILLS(OSB_READ)
#undef OSB_READ
  return out;
}

std::string with_block(std::string_view text, std::string_view slug, std::optional<std::string_view> block) {
  std::string begin = fmt::format("<!-- BEGIN opensandbox-{} -->\n", slug);
  std::string end = fmt::format("<!-- END opensandbox-{} -->\n", slug);
  std::string fresh = block ? begin + std::string(*block) + end : "";
  size_t from = text.find(begin), to = from == text.npos ? text.npos : text.find(end, from);
  // A block without its end was cut by somebody: what follows may be theirs, and stays.
  if (to != text.npos)
    return std::string(text.substr(0, from)) + fresh + std::string(text.substr(to + end.size()));
  if (!block) return std::string(text);
  std::string gap = text.empty() || text.ends_with("\n\n") ? "" : text.ends_with('\n') ? "\n" : "\n\n";
  return std::string(text) + gap + fresh;
}

int run_skills(const SkillsOptions& options) {
  using What = SkillsOptions::What;
  auto result = options.what == What::list   ? list(options)
                : options.what == What::show ? show(options)
                                             : change(options);
  if (!result) {
    print_error("osb", result.error());
    return 1;
  }
  if (options.output == "table")
    print_for_people(options, *result);
  else
    fmt::print("{}", options.output == "json" ? pretty_json(*result) + "\n" : yaml(*result));
  return 0;
}

}  // namespace osb::cli
