#pragma once

// The launcher at work: one thread that waits for the server's requests, for sandboxes that start or end, for
// signals and for its own timers, and keeps the server alive.

#include <sys/epoll.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/protocol.h"
#include "launcher/sandboxes.h"
#include "launcher/server_process.h"
#include "launcher/settings.h"
#include "launcher/state_dir.h"

namespace osb::launcher {

class Loop {
 public:
  Loop(Settings& settings, StateDir& state, Sandboxes& sandboxes);

  // Until the service is asked to end. The status to exit with.
  int run();

 private:
  using Clock = std::chrono::steady_clock;

  // What the loop waits for, by descriptor.
  struct Waiting {
    enum class For { signal, server, start, death } what = For::signal;
    uint64_t tag = 0;
    bool keep_files = false;
    std::string id;
    Fd fd;
    std::unique_ptr<Plan> plan;
    std::unique_ptr<Starting> starting;
  };

  void watch(int fd, Waiting waiting);
  void forget(int fd);
  void dispatch(int fd);
  void on_signals(int fd);
  void on_server_message();
  void handle(const Request& request);
  void start_sandbox(const Request& request);
  void on_start_report(Waiting waiting);
  void end_sandbox(uint64_t tag, const std::string& id, bool keep_files);
  void end_when_empty(Waiting waiting);
  bool finish_end(const Waiting& waiting);
  void freeze_sandbox(uint64_t tag, const std::string& id);
  struct Freezing;
  bool finish_freeze(const Freezing& freezing);
  void answer(Answer answer);
  void send_answers();
  void set_interest();
  void answer_error(uint64_t tag, const Error& error);
  void start_server();
  void reap();
  void empty_trash_soon();
  void empty_trash();
  Clock::duration timeout() const;
  int wait(struct epoll_event* events, int count);
  void retry();

  Settings& settings_;
  StateDir& state_;
  Sandboxes& sandboxes_;
  Fd epoll_;
  std::map<int, Waiting> waiting_;
  // What the kernel finishes in its own time; each returns true when it is done.
  std::vector<std::function<bool()>> retries_;
  Clock::duration retry_after_{};
  ServerProcess server_;
  // Answers that the server has not made room for. While there are any, or much is under way, no request is
  // read: what a server can make this process hold is bounded by what is under way at once.
  std::deque<Answer> unsent_;
  uint32_t interest_ = 0;  // of epoll, in the server's channel
  Clock::time_point server_started_{}, restart_at_{};
  Clock::duration restart_delay_;
  bool stopping_ = false;
  int exit_status_ = 0;
  Clock::time_point stop_by_{};
  pid_t trash_worker_ = -1;
  std::optional<Clock::time_point> trash_at_;
  bool spares_wanted_ = true;
  std::optional<Clock::time_point> drop_spares_at_;
};

}  // namespace osb::launcher
