#pragma once

// One command: its process, its output, how it ended.
//
// A command is over when its leader (the shell) has ended, not when its output has: what the leader started
// in the background lives on with a working standard output, which execd keeps reading and throws away.
// Neither a slow client nor a client that leaves changes how a command runs.
//
// Belongs to one loop. Shared by the registry, the request that streams it and the readers of its pipes.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "execd/core.h"
#include "execd/event_stream.h"
#include "execd/line_splitter.h"
#include "execd/output_log.h"
#include "execd/pipes.h"
#include "execd/process_group.h"
#include "execd/spawn.h"
#include "io/running_time.h"

namespace osb::execd {

enum class Mode { foreground, background };

struct CommandSpec {
  Mode mode = Mode::foreground;
  std::string content;  // as status shows it
  std::string program;  // see SpawnRequest
  std::vector<std::string> argv;
  Environment env;
  std::string cwd;
  // 0: none. When it is over, everything that the command has started ends with it.
  milliseconds timeout{0};
  std::optional<Credentials> credentials;
};

class Command : public std::enable_shared_from_this<Command> {
 public:
  // Starts the process. What comes back is complete: it is being read, a client may attach. A command whose
  // process could not be started is one that has ended, with the reason as its last event.
  static std::shared_ptr<Command> start(Core& core, CommandSpec spec);

  const std::string& id() const { return id_; }
  const std::string& content() const { return content_; }
  Mode mode() const { return mode_; }
  bool started() const { return started_process_; }
  bool running() const { return !finished_at_; }
  WallTime started_at() const { return started_at_; }
  std::optional<WallTime> finished_at() const { return finished_at_; }
  int exit_code() const { return exit_code_; }           // when finished
  milliseconds wall_time() const { return wall_time_; }  // when finished
  // When its process has ended; never of one that could not be started.
  const std::optional<ProcessUse>& use() const { return use_; }
  const std::string& error_text() const { return error_; }  // "" after success
  EventStream& events() { return events_; }
  const OutputLog& log() const { return log_; }
  size_t memory_bytes() const;

  // SIGTERM to the group, SIGKILL to what is left of it after three seconds. Returns when the group is gone
  // or was killed.
  static io::Task<> interrupt(std::shared_ptr<Command> self);

 private:
  struct Output {
    explicit Output(const io::Executor& executor) : pipe(executor) {}
    PipeEnd pipe;
    LineSplitter lines;
    bool much = false;  // the last piece of it was large
  };

  Command(Core& core, const CommandSpec& spec);
  std::expected<void, SpawnError> launch(CommandSpec& spec);
  Result<Fd> open_pipe(std::optional<Output>& output);
  static io::Task<> read_output(std::shared_ptr<Command> self, Output* output);
  void consume(Output& output, std::string_view bytes);
  void drain(Output& output);
  void attach_process();
  void on_exit(ExitStatus status);
  // Why it was ended, when that was not its own doing; "" otherwise.
  std::string imposed_end(ExitStatus status);
  void flush_lines(std::string& encoded);
  void finish(int exit_code, std::string error, std::string_view last_events);

  Core& core_;
  std::string id_;
  std::string content_;
  Mode mode_;
  WallTime started_at_;
  std::chrono::steady_clock::time_point started_;
  std::optional<WallTime> finished_at_;
  int exit_code_ = -1;
  milliseconds wall_time_{0};
  std::optional<ProcessUse> use_;
  std::string error_;

  bool started_process_ = false;
  pid_t pid_ = -1;  // -1 once it was reaped
  std::optional<ProcessGroup> interrupted_;
  io::RunningTimer timeout_;
  milliseconds time_limit_{0};
  bool timed_out_ = false;
  uint64_t memory_kills_before_ = 0;
  std::optional<Output> out_, err_;  // a background command has only the first
  EventStream events_;
  OutputLog log_;
};

}  // namespace osb::execd
