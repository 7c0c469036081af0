#pragma once

// The tree of commands as pages: one of the manual per command, and docs/cli.md.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace osb::cli {

struct Page {
  std::string name;  // "osb-sandbox-list.1"
  std::string text;
};
std::vector<Page> manual_pages(const CLI::App& root);

std::string command_document(const CLI::App& root);  // Markdown

}  // namespace osb::cli
