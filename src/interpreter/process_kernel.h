#pragma once

// A kernel of ours (kernels/README.md): a process, its two output pipes, its socket.

#include <optional>

#include "base/frame.h"
#include "execd/core.h"
#include "execd/pipes.h"
#include "interpreter/kernel.h"
#include "interpreter/kernel_channel.h"
#include "interpreter/language.h"
#include "io/socket.h"

namespace osb::interpreter {

struct KernelStart {
  const Language* language = nullptr;
  std::string program;
  std::vector<std::string> env;  // "NAME=value"
  std::string cwd;

  // Everything but descriptors and user.
  execd::SpawnRequest request() const;
  bool operator==(const KernelStart&) const = default;
};

class ProcessKernel final : public Kernel, public std::enable_shared_from_this<ProcessKernel> {
 public:
  // Starts the interpreter; the kernel is ready a while later.
  static Result<std::shared_ptr<ProcessKernel>> start(execd::Core& core, const KernelStart& start);
  // A kernel whose process follows: somebody gives it the other ends.
  static Result<std::shared_ptr<ProcessKernel>> adopt(execd::Core& core, KernelEnds ours);
  // Starts the process of an adopted kernel. A failure is how the kernel ends.
  void launch(const KernelStart& start, const KernelEnds& theirs);
  // The process of an adopted kernel, which is nobody's child that execd could wait for.
  void set_process(pid_t pid);

  void listen(std::weak_ptr<KernelListener> listener) override;
  void run(std::string_view id, std::string_view code) override;
  void interrupt() override;
  void destroy() override;
  bool ended() const { return ended_.has_value(); }
  bool ready() const { return ready_; }

 private:
  using Pipe = execd::PipeEnd;

  ProcessKernel(execd::Core& core, io::Socket socket)
      : core_(core),
        socket_(std::move(socket)),
        out_(core.executor),
        err_(core.executor),
        pidfd_(core.executor) {}
  static io::Task<> read_output(std::shared_ptr<ProcessKernel> self, Stream stream);
  static io::Task<> read_frames(std::shared_ptr<ProcessKernel> self);
  static io::Task<> watch_process(std::shared_ptr<ProcessKernel> self);
  static io::Task<> write_frames(std::shared_ptr<ProcessKernel> self);
  void send(std::string_view message);
  Pipe& pipe(Stream stream) { return stream == Stream::out ? out_ : err_; }
  bool on_bytes(std::string_view bytes);
  void on_frame(std::string_view text);
  void drain(Stream stream);
  void consume(Stream stream, std::string_view bytes);
  std::string describe(execd::ExitStatus status);
  void on_exit(std::string how);
  void end(std::string reason);
  void signal(int number);
  void signal_interrupt();

  execd::Core& core_;
  io::Socket socket_;
  Pipe out_, err_;
  pid_t pid_ = -1;                            // -1 when unknown or reaped
  uint64_t memory_kills_before_ = 0;          // when the cell began
  io::asio::posix::stream_descriptor pidfd_;  // of one that is no child of execd
  bool interrupt_pending_ = false;            // asked for before the process was known
  bool ready_ = false;
  bool busy_ = false;  // a cell runs
  std::optional<std::string> ended_;
  std::string last_words_;  // what it wrote to stderr before it was ready
  FrameReader frames_{kMaxFrame};
  std::string outgoing_;  // frames behind those that are being written
  bool writing_ = false;
  std::string run_id_;
  bool told_interrupt_ = false;       // of this run
  bool signal_when_written_ = false;  // SIGINT
  std::weak_ptr<KernelListener> listener_;
};

}  // namespace osb::interpreter
