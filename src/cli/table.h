#pragma once

// Lists for people: columns as wide as their widest cell, two blanks between them.

#include <string>
#include <vector>

namespace osb::cli {

// The first row is the head. All rows are equally long.
std::string print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace osb::cli
