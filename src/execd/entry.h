#pragma once

// The entry process of a native sandbox: what the sandbox is for. When it ends the sandbox ends, and
// everything else in it. A hook that is to run before it is the first part of it: one that fails is its end.
//
// The states, in the form the control connection sends them:
//   {"version":1,"state":"waiting"}
//   {"version":1,"state":"running","pid":7}
//   {"version":1,"state":"failed","path":"/nope","errno":2,"message":"exec /nope: No such file or directory"}
//   {"version":1,"state":"ended","exit_code":0}   or   {"version":1,"state":"ended","signal":9}
// Both forms of the last also have "output", the last part of what the process wrote, and "truncated" when
// that is not all, and where the kernel's counter can be read from inside "out_of_memory". When somebody
// outside has stopped the sandbox they have "stopped":true; a process that ends by the signal it was sent for
// that has done as it was told, and has "exit_code":0.

#include <string>
#include <vector>

#include "execd/core.h"
#include "execd/entry_log.h"
#include "execd/hooks.h"

namespace osb::execd {

struct EntryRequest {
  std::vector<std::string> argv;
  Environment env;
  std::string cwd = "/";
  uint32_t uid = 0, gid = 0;
  SandboxLimits limits;
  bool inherits = false;  // env comes on top of execd's own, and cwd is execd's
};
// The frame {"init":{...}}.
Result<EntryRequest> parse_entry(std::string_view frame);

class Entry {
 public:
  explicit Entry(Core& core);

  enum class State { waiting, running, failed, ended };
  State state() const { return state_; }
  // Every state so far, oldest first.
  const std::vector<std::string>& history() const { return history_; }
  // {"output":"...","truncated":false}: the last part of what the process has written so far.
  std::string output_json() const;
  // Wakes when the history has grown beyond `seen`.
  io::Task<> wait_beyond(size_t seen);
  // Code::wrong_state unless waiting. A process that cannot be started is the state "failed", not an error.
  // Also makes the request's environment and directory those of the sandbox.
  Result<void> start(EntryRequest request);
  // Somebody outside stops the sandbox: the process and its group get this signal, and its end, for which
  // nobody waits here, is said as always. Without a process that is the end.
  void stop(int number);
  // It does not end by itself.
  void kill();
  // What execd ends with, for whoever only sees that: as a shell would say it of the process. 0 while that
  // has not ended.
  int exit_code() const { return exit_code_; }
  // Runs a shell that does nothing: what it needs (files of the image, tables of this process) is at hand
  // then, and whoever takes the sandbox does not wait for it. Nothing is said about it.
  void rehearse();

 private:
  void enter(State state, std::string json);
  void refuse(const SpawnError& error);  // the state "failed"
  void start_hook(Hook hook);
  void start_program();
  io::Task<> start_program_later();
  bool launch(std::vector<std::string> argv, Reaper::Ended ended);
  void on_hook_exit(ExitStatus status, std::chrono::seconds limit, bool late);
  void on_exit(ExitStatus status);

  Core& core_;
  State state_ = State::waiting;
  pid_t pid_ = -1;
  bool held_ = false;    // for a claim: see rehearse()
  int stop_signal_ = 0;  // somebody stops it
  int exit_code_ = 0;
  uint64_t memory_kills_before_ = 0;
  std::shared_ptr<EntryOutput> output_;
  std::shared_ptr<Fd> output_end_;  // for its process, and the hooks beside it
  std::vector<std::string> argv_;
  std::vector<Hook> periodic_;
  std::vector<std::string> history_;
  io::Event changed_;
};

}  // namespace osb::execd
