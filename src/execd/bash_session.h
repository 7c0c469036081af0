#pragma once

// A bash session: one shell that lives across commands. Functions, options, traps, variables, the working
// directory, "$!" and "wait" are simply still there. Commands of one session run one after the other.
//
// A command that ends the shell does not end the session: the next command finds the state from before that
// command.

#include <list>
#include <memory>

#include "base/clock.h"
#include "execd/event_stream.h"
#include "execd/line_splitter.h"
#include "execd/shell.h"

namespace osb::execd {

struct SessionRun {
  std::string code;
  std::string cwd;  // "" stays where the shell is
  milliseconds timeout{0};
};

class BashSession : public std::enable_shared_from_this<BashSession> {
 public:
  static std::expected<std::shared_ptr<BashSession>, SpawnError> create(Core& core, std::string cwd);

  const std::string& id() const { return id_; }

  // One command, from waiting for its turn to its last event.
  struct Run {
    explicit Run(io::Executor executor) : events(executor), decided(executor), wake(executor) {}
    EventStream events;
    // Set when it is known whether there will be events: "" then, or why the directory cannot be entered.
    io::Event decided;
    std::string refusal;
    void cancel();

   private:
    friend class BashSession;
    enum class Stop { none, timeout, cancelled };
    void stop(Stop why);
    io::Event wake;
    Stop stopped = Stop::none;
    LineSplitter lines{LineSplitter::CarriageReturn::is_text};
    std::chrono::steady_clock::time_point started;
  };
  std::shared_ptr<Run> run(SessionRun request);

  // Kills what runs. Nothing can be run any more.
  void destroy();

 private:
  BashSession(Core& core, std::string cwd);
  std::expected<void, SpawnError> start_shell(const Environment& env, const std::string& cwd);
  static io::Task<> perform(std::shared_ptr<BashSession> self, std::shared_ptr<Run> run, SessionRun request);
  io::Task<> execute(std::shared_ptr<Run> run, SessionRun request);
  io::Task<> wait_for_end(std::shared_ptr<Run> run, std::shared_ptr<Shell::Request> request,
                          milliseconds timeout);
  io::Task<bool> ensure_shell();
  io::Task<> apply_env_file();
  void finish(Run& run, const Shell::Request& request, milliseconds timeout);
  void refuse(Run& run, std::string why);
  static io::Task<> read_output(std::shared_ptr<BashSession> self);
  void consume(std::string_view bytes);
  void drain();

  Core& core_;
  std::string id_;
  std::string cwd_;
  bool destroyed_ = false;
  io::asio::posix::stream_descriptor output_;
  Fd output_for_shells_;
  std::shared_ptr<Shell> shell_;
  std::map<std::string, std::string> file_env_;  // what of the env file the shell has
  std::list<Run*> queue_;                        // the first one runs
  io::Event turn_;
  Run* active_ = nullptr;  // gets the output
};

}  // namespace osb::execd
