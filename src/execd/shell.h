#pragma once

// One persistent bash process of a session, with its keeper (see shell_script.h): requests in, answers out,
// one after the other. Belongs to one loop.

#include <deque>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "execd/core.h"
#include "execd/pipes.h"
#include "execd/proc_stat.h"

namespace osb::execd {

struct ShellStart {
  std::string program;  // of bash
  std::string cwd;
  Environment env;
  std::optional<Credentials> credentials;
  int output = -1;  // borrowed: what commands write to
};

class Shell : public std::enable_shared_from_this<Shell> {
 public:
  static std::expected<std::shared_ptr<Shell>, SpawnError> start(Core& core, const ShellStart& start);
  ~Shell();

  // A request that waits for its answer. `status` is set when the shell has answered.
  struct Request {
    explicit Request(io::Executor executor) : changed(std::move(executor)) {}
    std::optional<int> status;
    bool shell_ended = false;
    io::Event changed;    // status or shell_ended
    uint64_t keeper = 0;  // the number of the keeper it makes, if it does
    uint64_t behind = 0;  // the number of the keeper that was asked for before it
  };
  // Executes the client's code; a new keeper is made right after it.
  std::shared_ptr<Request> run(std::string_view code);
  // Makes a keeper of the shell as it will be when it comes to that.
  void make_keeper();
  // Executes code of ours and waits. Nothing when the shell ended over it.
  io::Task<std::optional<int>> control(std::string code);

  bool alive() const { return !exit_; }
  pid_t pid() const { return pid_; }
  std::optional<ExitStatus> exit() const { return exit_; }
  // Returns when the state from before this request is safe, or cannot be made so.
  io::Task<> wait_for_state_before(const Request& request);
  // Kills the shell and what it started since then; earlier background jobs live on.
  void kill_since(const Moment& since);
  // Kills the shell, its whole group and the keeper.
  void kill_all();
  // Of a shell that has ended: the state its keeper has, as bash code. Nothing when there is no keeper.
  io::Task<std::optional<std::string>> recover();

 private:
  explicit Shell(Core& core);
  Result<void> open_pipes(Fd& requests, Fd& answers, Fd& wake);
  void send(char kind, std::string_view code, std::shared_ptr<Request> request);
  static io::Task<> write_requests(std::shared_ptr<Shell> self);
  static io::Task<> read_answers(std::shared_ptr<Shell> self);
  bool read_available();
  void on_answers(std::string_view bytes);
  void on_line(std::string_view line);
  void on_exit(ExitStatus status);
  io::Task<> wait_for_keeper(uint64_t number);
  void on_keeper(pid_t pid, uint64_t number);
  void kill_keeper();

  Core& core_;
  int first_descriptor_;  // shell_script.h
  pid_t pid_ = -1;
  std::optional<ExitStatus> exit_;
  PipeEnd requests_, answers_;
  Fd wake_;
  std::string unsent_;
  bool writing_ = false;
  std::deque<std::shared_ptr<Request>> pending_;
  std::string received_;  // of an answer that is not complete
  pid_t keeper_ = -1;
  uint64_t keepers_asked_ = 0, keepers_made_ = 0, keeper_number_ = 0;
  bool ended_ = false;  // by kill_all(): a keeper that reports itself from now on is not wanted
  io::Event keeper_changed_;
  std::optional<size_t> state_size_;  // the rest of received_ is state, so long
  std::optional<std::string> state_;
  io::Event recovered_;  // state_ is there, or will never be
};

}  // namespace osb::execd
