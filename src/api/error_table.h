#pragma once

// Every code that this server answers with: the one table, of which docs/errors.md is made. Answers
// themselves are made in error_catalogue.h and sandbox/failures.h, which know the particulars; here stands
// what a code means wherever it comes from, and with which statuses. scripts/style refuses a code in the
// sources that has no row, and a row whose code no test names.

#include <span>
#include <string>
#include <string_view>

namespace osb::api {

struct ErrorRow {
  std::string_view code;
  std::string_view statuses;  // "400, 409"
  std::string_view when;      // what has happened, as a sentence
  std::string_view remedy;    // what to do about it, as a sentence
};

// In the order of the document: by group, and within it as somebody who reads it from the top needs it.
struct ErrorGroup {
  std::string_view title;
  std::span<const ErrorRow> rows;
};
std::span<const ErrorGroup> error_table();

// The whole of docs/errors.md.
std::string errors_document();

}  // namespace osb::api
