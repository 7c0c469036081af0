#include "execd/command_request.h"

#include <sys/stat.h>
#include <unistd.h>

#include "execd/paths.h"
#include "execd/users.h"
#include "json/decode.h"

namespace osb::execd {
namespace {

constexpr int64_t kMaxTimeoutMs = int64_t{1000} * 60 * 60 * 24 * 365;

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

// For people who read the status: the words as they would be typed.
std::string shell_words(const std::vector<std::string>& argv) {
  std::string out;
  for (const std::string& word : argv) {
    if (!out.empty()) out += ' ';
    bool plain = !word.empty() && word.find_first_not_of(
                                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                      "_-./:=,+@%") == word.npos;
    if (plain) {
      out += word;
      continue;
    }
    out += '\'';
    for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

std::optional<uint32_t> decode_id(const json::Field& field) {
  auto value = field.integer();
  if (!value) return std::nullopt;
  if (*value < 0 || *value >= 0xFFFFFFFF) {  // the largest means "no change" to the kernel
    field.complain("value_error", "must be between 0 and 4294967294");
    return std::nullopt;
  }
  return static_cast<uint32_t>(*value);
}

void check_environment(const json::Field& field, const std::map<std::string, std::string>& envs) {
  for (const auto& [name, value] : envs) {
    if (name.empty() || name.find('=') != name.npos || has_nul(name)) {
      field.complain("value_error", "'" + name + "' cannot be the name of a variable");
    } else if (has_nul(value)) {
      field.complain("value_error", "the value of " + name + " contains a NUL byte");
    }
  }
}

// `command` or `argv`, exactly one of them.
void decode_program(const json::Field& root, CommandSpec& spec) {
  auto command = root["command"].string();
  auto argv = root["argv"].string_list();
  if (command && command->empty()) command.reset();
  if (argv && argv->empty()) argv.reset();
  if (!command == !argv) {
    root["command"].complain("value_error",
                             command ? "cannot be given together with argv" : "must not be empty");
    return;
  }
  if (argv) {
    if (argv->front().empty()) root["argv"].complain("value_error", "its first element must not be empty");
    for (const std::string& word : *argv) {
      if (has_nul(word)) root["argv"].complain("value_error", "must not contain NUL bytes");
    }
    spec.content = shell_words(*argv);
    spec.argv = std::move(*argv);
    return;
  }
  if (has_nul(*command)) root["command"].complain("value_error", "must not contain NUL bytes");
  spec.content = std::move(*command);
}

}  // namespace

std::expected<CommandSpec, ApiError> decode_command(const boost::json::value& body, const Core& core) {
  json::Issues issues;
  json::Field root = json::Field::root(body, issues, "body", json::Reading::exact);
  CommandSpec spec;
  decode_program(root, spec);
  spec.mode = root["background"].boolean().value_or(false) ? Mode::background : Mode::foreground;
  int64_t timeout = root["timeout"].integer().value_or(0);
  if (timeout < 0) root["timeout"].complain("greater_than_equal", "must not be negative");
  spec.timeout = milliseconds(std::min(timeout, kMaxTimeoutMs));
  auto uid = decode_id(root["uid"]);
  auto gid = decode_id(root["gid"]);
  if (gid && !root["uid"].present()) root["gid"].complain("value_error", "needs uid");
  auto envs = root["envs"].string_map().value_or(std::map<std::string, std::string>());
  check_environment(root["envs"], envs);
  auto cwd = root["cwd"].string().value_or("");
  if (!issues.empty()) return std::unexpected(first_issue(issues));

  spec.env = core.command_env();
  spec.env.merge(envs);
  spec.cwd = core.cwd;
  if (!cwd.empty()) {
    auto resolved = resolve_cwd(cwd, spec.env, core.cwd);
    if (!resolved) return std::unexpected(resolved.error());
    spec.cwd = std::move(*resolved);
  }
  spec.credentials = uid ? credentials_of(*uid, gid) : core.identity;
  if (spec.argv.empty()) {
    ShellProgram shell = find_shell(core.env);
    spec.program = shell.file;
    spec.argv = {shell.name, "-c", spec.content};
    // Also saves bash from looking for it in the accounts, a tenth of its start.
    spec.env.set_default("SHELL", shell.file);
  }
  return spec;
}

Credentials credentials_of(uid_t uid, std::optional<gid_t> gid) {
  Users users = Users::load();
  const User* user = users.find(uid);
  Credentials out{uid, gid.value_or(user ? user->gid : uid), {}};
  if (user) out.groups = users.groups_of(*user);
  return out;
}

std::expected<std::string, ApiError> resolve_cwd(std::string_view cwd, const Environment& env,
                                                 std::string_view base) {
  auto path = resolve_path(cwd, env, base);
  if (!path) return std::unexpected(bad_request("cwd: " + path.error().message));
  struct stat info;
  if (::stat(path->c_str(), &info) < 0) {
    return std::unexpected(
        bad_request("cwd: " + *path + ": " + errno_text(errno) + "; create the directory first"));
  }
  if (!S_ISDIR(info.st_mode)) return std::unexpected(bad_request("cwd: " + *path + " is not a directory"));
  return std::move(*path);
}

ShellProgram find_shell(const Environment& env) {
  std::vector<std::string> path;
  if (const std::string* value = env.find("PATH")) path.push_back("PATH=" + *value);
  for (const char* name : {"bash", "sh"}) {
    for (const std::string& file : executable_candidates(name, path)) {
      if (::access(file.c_str(), X_OK) == 0) return {name, file};
    }
  }
  return {"sh", ""};
}

}  // namespace osb::execd
