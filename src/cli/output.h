#pragma once

// What the commands of the published client's tree print: tables for people, JSON and YAML for programs, by
// `-o`. The shapes are that client's, so that scripts written for it read ours.

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "json/decode.h"

namespace osb::cli {

class Output {
 public:
  // `formats` are words of table, json, yaml, raw; the first is the default.
  void options(CLI::App& app, std::vector<std::string> formats = {"table", "json", "yaml"});

  const std::string& format() const { return format_; }
  bool is_table() const { return format_ == "table"; }
  bool given() const { return option_ && option_->count() > 0; }

  // "OK: ..." on standard output; a warning on standard error unless a program reads it.
  void ok(const std::string& message) const;
  void warn(const std::string& message) const;
  // One thing with its members: a table of two columns.
  void record(std::string_view title, const json::bj::object& members) const;
  // The same, for a thing that was just made.
  void made(std::string_view title, const json::bj::object& members) const;
  // Several things. Programs get `whole`, people a table of these columns of the rows.
  void rows(std::string_view title, const std::vector<std::string>& columns, const json::bj::array& rows,
            const json::bj::value& whole) const;

 private:
  bool printed(const json::bj::value& value) const;  // when it is for programs

  std::string format_ = "table";
  CLI::Option* option_ = nullptr;
};

std::string pretty_json(const json::bj::value& value);  // indented by two
std::string yaml(const json::bj::value& value);         // block style, members by name
std::string boxed_table(std::string_view title, const std::vector<std::vector<std::string>>& rows,
                        bool ruled);
std::string with_icon(std::string_view state);  // "● Running"

}  // namespace osb::cli
