#include "execd/shell_script.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace osb::execd::shell {
namespace {

// Everything on one line: the line number that bash reports for a client's code starts there. The report
// stands in the condition of the loop, so that "continue" in a client's code does not skip it; "break" ends
// the loop, and the line begins again. "\builtin" is safe from aliases, and from functions of the other
// names.
// While a client's code runs, /dev/null stands in for the private descriptors. Closing them would be nicer,
// but bash then keeps what it has to restore at 10 and up, where clients like to have descriptors of their
// own (and bash confuses the two); what a duplicate replaces is kept above the number that was duplicated.
// "@0" to "@4" are the numbers of the private descriptors.
constexpr std::string_view kMain =
    R"sh(__osb_main='while :; do while \builtin printf "S%d\n" "$?" >&@1; )sh"
    R"sh(LC_ALL=C IFS= \builtin read -r -N 9 -u @0 __osb_n && )sh"
    R"sh(LC_ALL=C IFS= \builtin read -r -N "$((10#${__osb_n:1}))" -u @0 __osb_code || \builtin exit; do )sh"
    R"sh(if [[ $__osb_n == R* ]]; then )sh"
    R"sh(\builtin eval "$__osb_code" <&@2 >&@3 2>&@3 @0<&@2 @1>&@2 @3>&@2 @4<&@2; )sh"
    R"sh(else \builtin eval "$__osb_code"; fi; done; done; \builtin eval "$__osb_main"'; \builtin eval "$__osb_main")sh";

// The order of the state: functions may need extglob to be read, aliases must not be expanded inside
// functions, options that end a shell on errors come last. Variables that bash does not let anybody set fail
// and are passed over.
constexpr std::string_view kKeeper =
    R"sh(__osb_f=$-; : "$(\builtin set -m; { \builtin set +m +e +u +x +v; )sh"
    R"sh(for __osb_i in /proc/$BASHPID/fd/*; do __osb_i=${__osb_i##*/}; )sh"
    R"sh([[ $__osb_i -gt 2 && $__osb_i -lt @0 ]] && \builtin eval "\\builtin exec $__osb_i>&-"; done; )sh"
    R"sh(\builtin printf "F%d %d\n" "$BASHPID" "$__osb_k" >&@1; \builtin read -r -u @4 __osb_i || \builtin exit; )sh"
    R"sh(\builtin unset __osb_i __osb_k __osb_n __osb_code; __osb_d=$(\builtin printf "shopt -s extglob\n"; )sh"
    R"sh(\builtin declare -f; \builtin declare -F; \builtin declare -p; \builtin alias -p; \builtin printf "set --"; )sh"
    R"sh((($#)) && \builtin printf " %q" "$@"; \builtin printf "\n"; \builtin umask -p; )sh"
    R"sh(\builtin printf "CDPATH= \\\\builtin cd -- %q\n" "$PWD"; \builtin trap -p; \builtin shopt -p; \builtin set +o; )sh"
    R"sh(for __osb_i in e u x v m; do [[ $__osb_f == *$__osb_i* ]] && \builtin printf "set -%s\n" "$__osb_i"; done); )sh"
    R"sh(LC_ALL=C; \builtin printf "D%d\n%s" "${#__osb_d}" "$__osb_d" >&@1; } </dev/null >/dev/null 2>&1 & )")sh";

std::string with_descriptors(std::string_view text, int first) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool number = text[i] == '@' && i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '4';
    if (number) {
      out += std::to_string(first + (text[++i] - '0'));
    } else {
      out += text[i];
    }
  }
  return out;
}

bool is_name_char(char c, bool first) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (!first && c >= '0' && c <= '9');
}

size_t name_length(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && is_name_char(text[n], n == 0)) ++n;
  return n;
}

}  // namespace

int first_descriptor(uint64_t open_files) {
  // Five, what bash keeps above them of the seven that it replaces while a client's code runs, and some air.
  constexpr uint64_t kRoom = 16;
  return static_cast<int>(std::min<uint64_t>(kUsualFirst, open_files - std::min(open_files, kRoom)));
}

std::string main_program(int first) { return with_descriptors(kMain, first); }
std::string keeper_program(int first, uint64_t number) {
  return "__osb_k=" + std::to_string(number) + "; " + with_descriptors(kKeeper, first);
}

std::string frame(char kind, std::string_view code) {
  char head[16];
  std::snprintf(head, sizeof head, "%c%08zu", kind, code.size());
  return std::string(head).append(code);
}

std::string quote(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string change_directory(std::string_view path) {
  std::string word, condition;
  auto refer = [&](std::string_view name) {
    word.append("\"${").append(name).append("}\"");
    condition.append(condition.empty() ? "" : " && ").append("-v ").append(name);
  };
  if (path == "~" || path.starts_with("~/")) {
    refer("HOME");
    path.remove_prefix(1);
  }
  while (!path.empty()) {
    size_t dollar = std::min(path.find('$'), path.size());
    if (dollar > 0) word += quote(path.substr(0, dollar));
    path.remove_prefix(dollar);
    if (path.empty()) break;
    bool braces = path.starts_with("${");
    size_t length = name_length(path.substr(braces ? 2 : 1));
    bool closed = !braces || path.substr(2 + length, 1) == "}";
    if (length == 0 || !closed) {
      word += "'$'";
      path.remove_prefix(1);
      continue;
    }
    refer(path.substr(braces ? 2 : 1, length));
    path.remove_prefix(length + (braces ? 3 : 1));
  }
  std::string code = "{ ";
  if (!condition.empty()) code += "[[ " + condition + " ]] && ";
  return code + "CDPATH= \\builtin cd -- " + word + "; } >/dev/null 2>&1";
}

}  // namespace osb::execd::shell
