#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace osb::cli {

std::string print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) out += fmt::format("{:{}}  ", row[i], width[i]);
    out += row.back() + "\n";
  }
  return out;
}

}  // namespace osb::cli
