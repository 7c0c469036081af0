#pragma once

// A kernel of ours (kernels/README.md): a process, its two output pipes, its socket.

#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>

#include "execd/core.h"
#include "interpreter/kernel.h"
#include "interpreter/kernel_channel.h"
#include "interpreter/kernel_frame.h"
#include "interpreter/language.h"
#include "io/socket.h"

namespace osb::interpreter {

struct KernelStart {
  const Language* language = nullptr;
  std::string program;
  execd::Environment env;
  std::string cwd;
};

class ProcessKernel final : public Kernel, public std::enable_shared_from_this<ProcessKernel> {
 public:
  // Starts the interpreter; the kernel is ready a while later.
  static Result<std::shared_ptr<ProcessKernel>> start(execd::Core& core, const KernelStart& start);
  // A kernel that somebody else starts at the other ends of `ours`.
  static Result<std::shared_ptr<ProcessKernel>> adopt(execd::Core& core, KernelEnds ours);
  // Of an adopted kernel, once it is known. The process must not be a child of execd.
  void set_process(pid_t pid);
  // The adopted kernel could not be started after all.
  void fail(std::string reason) { end(std::move(reason)); }

  void listen(std::weak_ptr<KernelListener> listener) override;
  void run(std::string_view id, std::string_view code) override;
  void interrupt() override { signal(SIGINT); }
  void destroy() override;
  bool ended() const { return ended_.has_value(); }
  bool ready() const { return ready_; }

 private:
  using Pipe = io::asio::posix::stream_descriptor;

  ProcessKernel(execd::Core& core, io::Socket socket)
      : core_(core), socket_(std::move(socket)), out_(core.executor), err_(core.executor) {}
  static io::Task<> read_output(std::shared_ptr<ProcessKernel> self, Stream stream);
  static io::Task<> read_frames(std::shared_ptr<ProcessKernel> self);
  static io::Task<> write_frame(std::shared_ptr<ProcessKernel> self, std::string frame);
  Pipe& pipe(Stream stream) { return stream == Stream::out ? out_ : err_; }
  bool on_bytes(std::string_view bytes);
  void on_frame(std::string_view text);
  bool read_once(Stream stream, size_t limit);
  void drain(Stream stream);
  void consume(Stream stream, std::string_view bytes);
  void on_exit(std::string how);
  void end(std::string reason);
  void signal(int number);

  execd::Core& core_;
  io::Socket socket_;
  Pipe out_, err_;
  pid_t pid_ = -1;  // -1 when unknown or reaped
  Fd pidfd_;        // of an adopted one
  bool ready_ = false;
  bool busy_ = false;  // a cell runs
  std::optional<std::string> ended_;
  std::string last_words_;  // what it wrote to stderr before it was ready
  FrameReader frames_;
  std::weak_ptr<KernelListener> listener_;
};

}  // namespace osb::interpreter
