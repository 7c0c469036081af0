#pragma once

// The launcher at work: one thread that waits for requests, for sandboxes that start or end, for signals and
// for its own timers, and keeps its services alive.

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/reactor.h"
#include "launcher/requests.h"
#include "launcher/sandbox_table.h"
#include "launcher/service.h"

namespace osb::launcher {

class Loop {
 public:
  Loop(std::vector<ServiceSpec> services, SandboxTable& sandboxes, Spawn spawn = spawn_service);

  // Until the service is asked to end. The status to exit with.
  int run();

  // The parts of run(), for tests: turn() is false when all is over.
  Result<void> open();
  bool turn();
  int exit_status() const { return exit_status_; }

 private:
  using Clock = std::chrono::steady_clock;

  // A service and the life it is in.
  struct Supervised {
    Supervised(ServiceSpec spec, Spawn spawn) : service(std::move(spec), std::move(spawn)) {}
    Service service;
    PeerId peer = kNobody;
  };

  Supervised* find(PeerId peer);
  bool any_runs() const;
  void start(Supervised& supervised);
  void start_due();
  Result<void> watch_wakes(Supervised& supervised);
  void wake(Supervised& supervised);
  void on_ended(Supervised& supervised, int wait_status);
  void on_message(Supervised& supervised);
  void close_channel(Supervised& supervised);
  void end_misbehaving(Supervised& supervised, const Error& error);
  void answer(PeerId peer, Answer answer);
  void set_interests();
  void on_signals();
  void stop(int exit_status);
  void kill_late();
  void reap();
  void empty_trash_soon();
  void empty_trash_in(Clock::duration delay);
  void empty_trash();
  void empty_trash_at_the_end();
  void run_timers();
  void keep_spares_a_while() { drop_spares_at_ = Clock::now() + kKeepSpares; }
  bool is_time_for_spares() const;
  Clock::duration timeout() const;

  // How long things are kept for the next sandbox after the last one came or went.
  static constexpr auto kKeepSpares = std::chrono::seconds(1);

  SandboxTable& sandboxes_;
  Reactor reactor_;
  Requests requests_;
  Fd signals_;
  std::vector<std::unique_ptr<Supervised>> services_;
  PeerId last_peer_ = kNobody;
  bool stopping_ = false;
  int exit_status_ = 0;
  Clock::time_point stop_by_{};
  pid_t trash_worker_ = -1;
  std::optional<Clock::time_point> trash_at_;
  bool spares_wanted_ = true;
  std::optional<Clock::time_point> drop_spares_at_;
};

}  // namespace osb::launcher
