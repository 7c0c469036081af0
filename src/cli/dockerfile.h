#pragma once

// A Dockerfile as instructions. Nothing is expanded yet: words keep their quotes and variables, because what
// those mean depends on the instructions before (expand()). What is not known here is refused by its name,
// with its line.
//
// Bounded: 1 MiB of text, 64 KiB for an instruction, 64 stages, 1,000 instructions, 1,000 words in each.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace osb::cli {

struct Instruction {
  enum class Kind { run, copy, add, env, workdir, user, entrypoint, cmd, arg, label, expose, shell };
  Kind kind = Kind::run;
  int line = 0;                                   // of its first word
  std::string text;                               // all of it on one line, for people
  std::map<std::string, std::string> flags = {};  // from, chown, chmod
  // run, entrypoint, cmd: a program and its arguments (is_list), or one text for a shell. shell: a list.
  // copy, add: sources and the target. Others: words as they were written.
  bool is_list = false;
  std::vector<std::string> words = {};
  // env, label; arg, where a value may be absent.
  std::vector<std::pair<std::string, std::optional<std::string>>> pairs = {};
};

struct Stage {
  int line = 0;
  std::string base;  // as it was written
  std::string name;  // in lower case; "" for none
  std::vector<Instruction> instructions = {};
};

struct Dockerfile {
  char escape = '\\';
  std::vector<Instruction> arguments = {};  // before the first stage
  std::vector<Stage> stages = {};
};

inline constexpr size_t kMaxDockerfile = 1 << 20;

// Code::invalid_argument: "line 3: HEALTHCHECK is not supported".
Result<Dockerfile> parse_dockerfile(std::string_view text);

// What a variable is; nothing when there is none.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

// A word without its quotes, with $NAME, ${NAME}, ${NAME:-word} and ${NAME:+word} replaced. Code::too_large
// above 64 KiB.
Result<std::string> expand(std::string_view word, char escape, const Lookup& lookup);

}  // namespace osb::cli
