#pragma once

// A bash that lives across commands, whatever they do. Functions, options, traps, variables, the working
// directory, "$!" and "wait" are simply still there. A command that ends the shell does not end this: the
// next command finds the state from before that command.
//
// Executes one command at a time; whoever owns it sees to that. Belongs to one loop.

#include <memory>

#include "execd/pipes.h"
#include "execd/shell.h"

namespace osb::execd {

class PersistentShell : public std::enable_shared_from_this<PersistentShell> {
 public:
  static std::expected<std::shared_ptr<PersistentShell>, SpawnError> create(Core& core, std::string cwd);

  // Gets what a command writes, output and errors in one stream as they come.
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void on_output(std::string_view bytes) = 0;
    // Whether the command shall wait before it may write more, and until when.
    virtual bool strained() const { return false; }
    virtual io::Task<> wait_for_room() { co_return; }
  };

  // How a command ended: it left the shell as it was, or took it along.
  struct Outcome {
    std::optional<int> status;
    std::optional<ExitStatus> shell_exit;
  };

  // A running shell that knows the variables of the env file. False when there can be none any more.
  io::Task<bool> prepare();
  // Executes code of ours. Nothing when the shell ended over it.
  io::Task<std::optional<int>> control(std::string code) { return shell_->control(std::move(code)); }
  // Precondition: prepared. When `stop` is set, the shell and what the command has started are killed.
  io::Task<Outcome> execute(std::string code, std::shared_ptr<Reader> reader, io::Event& stop);

  // Kills everything. Nothing can be executed any more.
  void destroy();

 private:
  PersistentShell(Core& core, std::string cwd);
  std::expected<void, SpawnError> start_shell(const Environment& env, const std::string& cwd);
  io::Task<bool> ensure_shell();
  io::Task<> apply_env_file();
  static io::Task<> read_output(std::shared_ptr<PersistentShell> self);
  void take(std::string_view bytes);
  void drain();

  Core& core_;
  std::string cwd_;
  bool destroyed_ = false;
  PipeEnd output_;
  Fd output_for_shells_;
  std::shared_ptr<Shell> shell_;
  std::map<std::string, std::string> file_env_;  // what of the env file the shell has
  std::shared_ptr<Reader> reader_;               // of the command that runs
};

}  // namespace osb::execd
