#pragma once

// A code context: a language, a directory, a kernel with the state of all cells so far, and the cells that
// wait for their turn.
//
// One cell runs at a time; others queue. A run belongs to its context and to the request that streams it; a
// client that leaves changes nothing. A context whose kernel has ended stays, to say so, until it is deleted.
//
// Belongs to one loop.

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>

#include "execd/core.h"
#include "execd/event_stream.h"
#include "interpreter/kernel.h"
#include "interpreter/output_text.h"
#include "io/running_time.h"

namespace osb::interpreter {

class Context final : public KernelListener, public std::enable_shared_from_this<Context> {
 public:
  static constexpr size_t kMaxWaiting = 64;

  struct Run {
    Run(io::Executor executor, std::string source) : events(executor), code(std::move(source)) {}
    execd::EventStream events;

   private:
    friend class Context;
    std::string id;
    std::string code;
    std::chrono::steady_clock::time_point started;
    OutputText out, err;
    int64_t told_count = 0;
    std::optional<KernelMessage> error;
  };

  // `cwd` is "" when the client did not ask for one.
  Context(execd::Core& core, std::string language, std::string cwd);
  // Takes the kernel, which may still be starting.
  void attach(std::shared_ptr<Kernel> kernel);

  const std::string& id() const { return id_; }
  const std::string& language() const { return language_; }
  const std::string& cwd() const { return cwd_; }
  const std::optional<std::string>& ended() const { return ended_; }  // why, if it has
  bool idle() const { return !active_ && waiting_.empty(); }

  bool used() const { return runs_ > 0; }

  // Every way in which a run may go ends in its events. They begin with `notice`, on standard error, if any.
  std::shared_ptr<Run> run(std::string code, std::string_view notice = {});
  void interrupt();
  // Ends the kernel and what runs or waits.
  void destroy();

  // Told the names of modules that a cell has imported.
  using Imported = std::function<void(const std::vector<std::string>& names)>;
  void when_imported(Imported imported) { imported_ = std::move(imported); }

  void on_ready() override;
  void on_output(Stream stream, std::string_view bytes) override;
  void on_message(const KernelMessage& message) override;
  void on_end(const std::string& reason) override;

 private:
  void start_next();
  void emit_output(Run& run, Stream stream, OutputText::More more, std::string_view bytes);
  void flush_partial_lines(OutputText::More more);
  void arm_partial_timer();
  void show(const KernelMessage& message);
  void finish(int64_t count);
  void refuse(Run& run, std::string_view name, std::string_view why);
  void fail_all(std::string_view name, const std::string& why);

  execd::Core& core_;
  std::string id_, language_, cwd_;
  std::shared_ptr<Kernel> kernel_;
  bool ready_ = false;
  std::optional<std::string> ended_;
  std::shared_ptr<Run> active_;
  std::deque<std::shared_ptr<Run>> waiting_;
  uint64_t runs_ = 0;
  io::RunningTimer start_limit_;
  io::asio::steady_timer partial_;
  bool partial_armed_ = false;
  Imported imported_;
};

}  // namespace osb::interpreter
