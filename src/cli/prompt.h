#pragma once

// A prompt at a terminal: a line that can be edited, earlier ones from a file of the user's, and Tab. Between
// two lines the terminal is as it was, for whatever runs then.

#include <functional>
#include <string>
#include <vector>

#include "cli/line_editor.h"
#include "cli/terminal.h"
#include "io/socket.h"

namespace osb::cli {

class Prompt {
 public:
  // What may stand in the place of a word.
  using Complete = std::function<io::Task<std::vector<std::string>>(std::string word)>;

  // Lines of one name share their history: ~/.opensandbox/history-NAME.
  Prompt(const std::string& name, Complete complete);

  // Code::cancelled after a signal beyond the `heard` ones, Code::not_found at the end of the input.
  io::Task<Result<std::string>> read(std::string prompt, io::asio::posix::stream_descriptor& input,
                                     Signals& signals, int heard);

 private:
  io::Task<> complete();
  void keep(const std::string& line);

  LineEditor editor_;
  Complete complete_;
  std::string history_file_;  // "" without a home
  std::string typed_;         // bytes that no line has taken yet
};

}  // namespace osb::cli
