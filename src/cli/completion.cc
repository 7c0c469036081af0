#include "cli/completion.h"

#include <algorithm>

#include "base/strings.h"

namespace osb::cli {
namespace {

constexpr const char* kBash = R"sh(# osb completion for bash
_osb() {
  local line=${COMP_LINE:0:COMP_POINT} cur prefix word
  local -a words
  read -ra words <<<"$line"
  case $line in *[[:space:]]) words+=("") ;; esac
  cur=${words[-1]}
  # bash cuts words at colons; what it keeps must not come twice
  prefix=
  case $COMP_WORDBREAKS in *:*) prefix=${cur%"${cur##*:}"} ;; esac
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("${word#"$prefix"}")
  done < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _osb osb
)sh";

constexpr const char* kZsh = R"sh(#compdef osb
_osb() {
  local -a found
  found=("${(@f)$(${words[1]} __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  if (( ${#found} )); then compadd -- "${found[@]}"; else _files; fi
}
if [ "${funcstack[1]}" = _osb ]; then _osb "$@"; else compdef _osb osb; fi
)sh";

constexpr const char* kFish = R"sh(# osb completion for fish
complete -c osb -f -a '(osb __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
)sh";

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (sub->get_name() == name) return sub;
  return nullptr;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* option_named(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-') || word == "-") return nullptr;
  return app.get_option_no_throw(word);
}

Wanted wanted_by(std::string_view name) {
  if (name == "SANDBOX_ID" || name == "ID") return Wanted::sandboxes;
  if (name == "IMAGE" || name == "--image") return Wanted::images;
  if (name == "SNAPSHOT_ID" || name == "SNAPSHOT" || name == "--snapshot" || name == "--snapshot-id")
    return Wanted::snapshots;
  return name == "--sandbox-id" ? Wanted::sandboxes : Wanted::nothing;
}

// The words of a choice: the parser describes it as {table,json,yaml}.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  size_t begin = type.find('{'), end = type.find('}', begin);
  std::vector<std::string> out;
  if (begin == type.npos || end == type.npos) return out;
  for (std::string_view word : split(std::string_view(type).substr(begin + 1, end - begin - 1), ','))
    out.emplace_back(trim(word));
  return out;
}

struct Place {
  const CLI::App* app;
  const CLI::Option* value_of = nullptr;  // an option that waits for its value
  size_t arguments = 0;                   // positional ones so far
};

// Where the words lead, before the last.
Place walk(const CLI::App& root, const std::vector<std::string>& line) {
  Place at{&root};
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    const std::string& word = line[i];
    if (at.value_of) {
      at.value_of = nullptr;
    } else if (const CLI::Option* option = option_named(*at.app, word)) {
      if (takes_value(*option)) at.value_of = option;
    } else if (word.starts_with('-')) {
      continue;
    } else if (const CLI::App* below = command_named(*at.app, word)) {
      at = {below};
    } else {
      ++at.arguments;
    }
  }
  return at;
}

const CLI::Option* argument_at(const CLI::App& app, size_t index) {
  const CLI::Option* last = nullptr;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    last = option;
    if (index-- == 0) return option;
  }
  return last && last->get_items_expected_max() > 1 ? last : nullptr;  // it takes all that follow
}

}  // namespace

Completion complete(const CLI::App& root, const std::vector<std::string>& line) {
  Completion out;
  // What comes after -- belongs to the sandbox.
  if (line.empty() || std::find(line.begin(), line.end() - 1, "--") != line.end() - 1) return out;
  const std::string& last = line.back();
  Place at = walk(root, line);
  auto offer = [&](const std::string& word) {
    if (word.starts_with(last)) out.words.push_back(word);
  };
  if (at.value_of) {
    for (const std::string& word : choices_of(*at.value_of)) offer(word);
    out.wanted = wanted_by(at.value_of->get_name(false));
  } else if (last.starts_with('-')) {
    for (const CLI::Option* option : at.app->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) offer("--" + name);
      if (last == "-")
        for (const std::string& name : option->get_snames()) offer("-" + name);
    }
  } else {
    for (const CLI::App* sub : at.app->get_subcommands([](const CLI::App*) { return true; }))
      if (!sub->get_group().empty()) offer(sub->get_name());
    const CLI::Option* argument = argument_at(*at.app, at.arguments);
    if (argument) out.wanted = wanted_by(argument->get_name(true));
    // `osb completion`: the only argument that is a choice
    if (argument)
      for (const std::string& word : choices_of(*argument)) offer(word);
  }
  std::ranges::sort(out.words);
  return out;
}

std::string completion_script(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : shell == "fish" ? kFish : "";
}

}  // namespace osb::cli
