#include "cli/build_stage.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/default_path.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "cli/path_pattern.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Kind = Instruction::Kind;

void set(std::vector<Variable>& list, const std::string& name, const std::string& value) {
  std::erase_if(list, [&](const Variable& one) { return one.first == name; });
  list.emplace_back(name, value);
}

std::vector<std::string> program_of(const Instruction& one, const BuildStage& stage) {
  if (one.is_list) return one.words;
  std::vector<std::string> words = stage.shell;
  words.push_back(one.words.front());
  return words;
}

bool is_variable(std::string_view name) {
  return name.find('=') == name.npos && name.find('\0') == name.npos && !name.empty();
}

Result<void> set_variables(const Instruction& one, char escape, BuildStage& stage) {
  // Each sees what was there before the instruction, not its neighbours.
  const Lookup lookup = stage.lookup();
  std::vector<Variable> fresh;
  for (const auto& [raw, value] : one.pairs) {
    std::string name = TRY(expand(raw, escape, lookup));
    if (!is_variable(name)) return fail(Code::invalid_argument, "this cannot be the name of a variable");
    fresh.emplace_back(std::move(name), TRY(expand(*value, escape, lookup)));
  }
  for (const auto& [name, value] : fresh) {
    if (one.kind == Kind::label) {
      stage.labels.insert_or_assign(name, value);
      continue;
    }
    set(stage.env, name, value);
    set(stage.own_env, name, value);
  }
  return {};
}

Result<void> declare(const Instruction& one, char escape, BuildArguments& arguments, BuildStage& stage) {
  for (const auto& [name, value] : one.pairs) {
    if (auto given = arguments.given.find(name); given != arguments.given.end()) {
      stage.arguments[name] = given->second;
      arguments.used.insert(name);
    } else if (value) {
      stage.arguments[name] = TRY(expand(*value, escape, stage.lookup()));
    } else if (auto global = arguments.global.find(name); global != arguments.global.end()) {
      stage.arguments[name] = global->second;
    }
  }
  return {};
}

Result<void> expose(const Instruction& one, char escape, BuildStage& stage) {
  for (const std::string& word : one.words) {
    std::string port = TRY(expand(word, escape, stage.lookup()));
    std::string number = port.substr(0, port.find('/'));
    std::string protocol = port.size() > number.size() ? port.substr(number.size() + 1) : "tcp";
    auto parsed = parse_number<uint16_t>(number);
    if (!parsed || *parsed == 0 || (protocol != "tcp" && protocol != "udp" && protocol != "sctp"))
      return fail(Code::invalid_argument, "EXPOSE takes ports like 8080 or 8080/udp");
    stage.ports.insert(number + "/" + protocol);
  }
  return {};
}

}  // namespace

std::optional<std::string> BuildStage::find(std::string_view name) const {
  for (const auto& [known, value] : env) {
    if (known == name) return value;
  }
  if (auto found = arguments.find(std::string(name)); found != arguments.end()) return found->second;
  if (name == "PATH") return std::string(kDefaultPath);
  return std::nullopt;
}

Lookup BuildStage::lookup() const {
  return [copy = *this](std::string_view name) { return copy.find(name); };
}

void BuildStage::extend_key(const std::string& with) {
  key = to_hex(sha256_digest(key + "\n" + std::to_string(with.size()) + ":" + with));
}

std::vector<Variable> BuildStage::environment() const {
  std::vector<Variable> out = env;
  for (const auto& [name, value] : arguments) {
    bool known = std::ranges::any_of(env, [&](const Variable& one) { return one.first == name; });
    if (!known) out.emplace_back(name, value);
  }
  return out;
}

bj::object BuildStage::config() const {
  bj::object out, environment, marks;
  bj::array exposed;
  for (const auto& [name, value] : own_env) environment[name] = value;
  for (const auto& [name, value] : labels) marks[name] = value;
  for (const std::string& port : ports) exposed.emplace_back(port);
  out["env"] = std::move(environment);
  out["labels"] = std::move(marks);
  out["exposedPorts"] = std::move(exposed);
  if (user) out["user"] = *user;
  if (own_workdir) out["workingDir"] = *own_workdir;
  if (entrypoint) out["entrypoint"] = bj::array(entrypoint->begin(), entrypoint->end());
  if (cmd) out["cmd"] = bj::array(cmd->begin(), cmd->end());
  return out;
}

std::string join_path(const std::string& workdir, const std::string& path) {
  return "/" + clean_path(path.starts_with('/') ? path : workdir + "/" + path);
}

std::map<std::string, std::string> automatic_arguments(const std::string& platform) {
  auto parts = split(platform, '/');
  std::map<std::string, std::string> out;
  for (const char* side : {"TARGET", "BUILD"}) {
    std::string of = side;
    out[of + "PLATFORM"] = platform;
    out[of + "OS"] = parts[0];
    out[of + "ARCH"] = parts.size() > 1 ? parts[1] : "";
    out[of + "VARIANT"] = parts.size() > 2 ? parts[2] : "";
  }
  return out;
}

Result<void> read_global_arguments(const Dockerfile& file, BuildArguments& arguments) {
  Lookup lookup = [&](std::string_view name) -> std::optional<std::string> {
    auto found = arguments.global.find(std::string(name));
    if (found == arguments.global.end()) return std::nullopt;
    return found->second;
  };
  for (const Instruction& one : file.arguments) {
    for (const auto& [name, value] : one.pairs) {
      auto given = arguments.given.find(name);
      if (given != arguments.given.end()) {
        arguments.global[name] = given->second;
        arguments.used.insert(name);
      } else if (value) {
        arguments.global[name] =
            TRY(in_context("line " + std::to_string(one.line), expand(*value, file.escape, lookup)));
      }
    }
  }
  return {};
}

Result<void> apply(const Instruction& one, char escape, BuildArguments& arguments, BuildStage& stage) {
  switch (one.kind) {
    case Kind::env:
    case Kind::label:
      return set_variables(one, escape, stage);
    case Kind::arg:
      return declare(one, escape, arguments, stage);
    case Kind::expose:
      return expose(one, escape, stage);
    case Kind::workdir:
      stage.workdir = join_path(stage.workdir, TRY(expand(one.words.front(), escape, stage.lookup())));
      stage.own_workdir = stage.workdir;
      return {};
    case Kind::user:
      stage.user = TRY(expand(one.words.front(), escape, stage.lookup()));
      if (stage.user->empty()) return fail(Code::invalid_argument, "USER is empty");
      return {};
    case Kind::shell:
      stage.shell = one.words;
      return {};
    case Kind::entrypoint:
      stage.entrypoint = program_of(one, stage);
      // Arguments of another program are of no use to this one.
      if (!stage.has_own_cmd) stage.cmd = std::vector<std::string>();
      return {};
    case Kind::cmd:
      stage.cmd = program_of(one, stage);
      stage.has_own_cmd = true;
      return {};
    case Kind::run:
    case Kind::copy:
    case Kind::add:
      break;
  }
  return fail(Code::internal, "this instruction changes files");
}

}  // namespace osb::cli
