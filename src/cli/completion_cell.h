#pragma once

// The cell that asks a context what may follow: it prints a word a line, changes nothing and gives no result.

#include <string>
#include <string_view>

namespace osb::cli {

// "" for a language that has no such cell. The word has letters, digits, dots, _ and $ only.
inline std::string completion_cell(std::string_view language, std::string_view word) {
  std::string text(word);
  if (language == "python")
    return "if 1: __import__('builtins').print(*(lambda c: list(__import__('itertools').takewhile(bool, "
           "(c.complete('" +
           text +
           "', i) for i in range(300)))))(__import__('rlcompleter').Completer(globals())), sep='\\n')\n";
  if (language == "bash")
    return "compgen -A variable -A function -A command -- '" + text + "' | sort -u | head -n 300\n";
  if (language == "javascript" || language == "typescript") {
    size_t dot = text.rfind('.');
    std::string owner = dot == text.npos ? "globalThis" : text.substr(0, dot);
    std::string prefix = dot == text.npos ? "" : text.substr(0, dot + 1);
    return "{ const found = new Set(); for (let o = Object(" + owner +
           "); o; o = Object.getPrototypeOf(o)) for (const n of Object.getOwnPropertyNames(o)) found.add('" +
           prefix + "' + n); console.log([...found].filter((n) => n.startsWith('" + text +
           "')).slice(0, 300).join('\\n')); }\n";
  }
  return "";
}

}  // namespace osb::cli
