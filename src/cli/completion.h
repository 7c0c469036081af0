#pragma once

// What may follow on an unfinished command line. Walks the tree of commands, so nothing has to be kept in
// step with it.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace osb::cli {

// What a place of the command line takes, besides words that the tree knows.
enum class Wanted { nothing, sandboxes, images, snapshots };

struct Completion {
  std::vector<std::string> words;  // of the tree, all that begin as the last word does
  Wanted wanted = Wanted::nothing;
};

// `line` are the words after the program's name; the last one is unfinished, perhaps "".
Completion complete(const CLI::App& root, const std::vector<std::string>& line);

// The script that a shell reads once: bash, zsh or fish; "" for another.
std::string completion_script(const std::string& shell);

}  // namespace osb::cli
