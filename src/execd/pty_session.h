#pragma once

// An interactive program that clients attach to over a WebSocket, one at a time. It lives on when they leave,
// and what it prints meanwhile is kept (bounded). How it ended is told to a client once, to the next one if
// nobody is there; whoever comes after that starts it anew.

#include <boost/asio/posix/stream_descriptor.hpp>
#include <deque>
#include <memory>

#include "execd/command.h"
#include "execd/core.h"
#include "execd/replay_buffer.h"
#include "execd/terminal.h"

namespace osb::execd {

enum class PtyMode { terminal, pipes };

class PtySession : public std::enable_shared_from_this<PtySession> {
 public:
  // `program` is executed as it is, without a shell; else `command` is for one, "" for an interactive one.
  PtySession(Core& core, std::string cwd, std::string command, std::optional<CommandSpec> program = {});

  const std::string& id() const { return id_; }
  bool running() const { return process_ != nullptr; }
  uint64_t output_offset() const { return replay_.total(); }
  PtyMode mode() const { return mode_; }  // of what runs

  // What a client has yet to be sent. The session fills it, the client's task empties it.
  struct Client {
    explicit Client(io::Executor executor) : changed(std::move(executor)) {}
    struct Output {
      char channel;  // 1 standard output, 2 standard error
      std::string bytes;
    };
    std::deque<Output> output;
    size_t bytes = 0;
    std::optional<int> exit_code;  // the program has ended, after all output
    size_t input_taken = 0;        // by the program, since the client was told
    bool evicted = false;          // somebody took over
    io::Event changed;
  };

  std::expected<void, SpawnError> start(PtyMode mode);
  // The program has ended and no client knows it yet: attach() tells.
  bool has_untold_end() const { return untold_end_.has_value(); }
  // The client that was to be told has gone before it heard of it.
  void keep_untold(int exit_code);
  // From here on everything goes to this client; the result is what came before, from `since`. Atomic: no
  // byte is in both, none in neither.
  ReplayBuffer::Piece attach(std::shared_ptr<Client> client, uint64_t since);
  void detach(const std::shared_ptr<Client>& client);
  std::shared_ptr<Client> holder() const { return client_; }
  // Call when the client has taken output: a program whose client is slow waits for it.
  void taken() { room_.set(); }

  // Queues bytes for the program. False when it does not read and too much waits, or when nothing runs.
  bool write_input(std::string_view bytes);
  void end_input();                       // pipes: after what waits
  int signal() const { return signal_; }  // that ended the program last; 0 when it ended by itself
  void resize(TerminalSize size);
  void send_signal(int number);
  void destroy();

 private:
  struct Process;
  std::expected<std::shared_ptr<Process>, SpawnError> launch(PtyMode mode);
  static io::Task<> read_output(std::shared_ptr<PtySession> self, std::shared_ptr<Process> process,
                                int which);
  static io::Task<> feed_input(std::shared_ptr<PtySession> self, std::shared_ptr<Process> process);
  static io::Task<> finish(std::shared_ptr<PtySession> self, std::shared_ptr<Process> process,
                           ExitStatus status);
  void deliver(char channel, std::string_view bytes);

  Core& core_;
  std::string id_, cwd_, command_;
  std::optional<CommandSpec> program_;
  int signal_ = 0;
  PtyMode mode_ = PtyMode::terminal;
  std::shared_ptr<Process> process_;
  ReplayBuffer replay_;
  std::shared_ptr<Client> client_;
  std::optional<int> untold_end_;
  io::Event room_;
};

}  // namespace osb::execd
