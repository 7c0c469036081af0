#pragma once

// A bash session: a shell that keeps its state, and the commands of a client in it, one after the other.

#include <list>
#include <memory>

#include "base/clock.h"
#include "execd/event_stream.h"
#include "execd/line_splitter.h"
#include "execd/persistent_shell.h"

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
  struct Run final : PersistentShell::Reader {
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
    void on_output(std::string_view bytes) override;
    bool strained() const override { return events.strained(); }
    io::Task<> wait_for_room() override { return events.wait_for_room(); }
    io::Event wake;
    Stop stopped = Stop::none;
    LineSplitter lines{LineSplitter::CarriageReturn::is_text};
    std::chrono::steady_clock::time_point started;
  };
  std::shared_ptr<Run> run(SessionRun request);

  // Kills what runs. Nothing can be run any more.
  void destroy();

 private:
  BashSession(Core& core, std::shared_ptr<PersistentShell> shell);
  static io::Task<> perform(std::shared_ptr<BashSession> self, std::shared_ptr<Run> run, SessionRun request);
  io::Task<> execute(std::shared_ptr<Run> run, SessionRun request);
  std::string imposed_end(const Run& run, const PersistentShell::Outcome& outcome, milliseconds timeout,
                          uint64_t memory_kills_before);
  void finish(Run& run, const PersistentShell::Outcome& outcome, const std::string& imposed);
  void refuse(Run& run, std::string why);

  Core& core_;
  std::string id_;
  bool destroyed_ = false;
  std::shared_ptr<PersistentShell> shell_;
  std::list<Run*> queue_;  // the first one runs
  io::Event turn_;
};

}  // namespace osb::execd
