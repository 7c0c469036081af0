#pragma once

// A sandbox for as long as one `osb` lives. It is leased: the server removes it by itself when nobody renews,
// so a killed osb leaves nothing behind for longer than a minute.

#include <chrono>
#include <string>

#include "base/clock.h"
#include "cli/api.h"
#include "cli/pull_line.h"
#include "cli/terminal.h"

namespace osb::cli {

class ScratchSandbox {
 public:
  enum class Afterwards { remove, keep };

  ScratchSandbox(Connection connection, NewSandbox what, Afterwards afterwards)
      : api_(std::move(connection)), what_(std::move(what)), afterwards_(afterwards) {}

  Api& api() { return api_; }
  const std::string& id() const { return id_; }  // "" before it is created

  // Returns when it runs; `line` says how far its image is. Code::cancelled after a signal: at once when the
  // server has answered, and id() is known; before that the first waits for the answer, which has the id to
  // clean up with, and the second does not.
  Task<Result<void>> create(Signals& signals, PullLine& line);

  // Renews the lease for ever; returns only when the server could not be reached for a whole lease. So it
  // also bounds the wait for a stream whose server has vanished.
  Task<> keep_lease();

  // Why a stream broke: the sandbox may have ended under it.
  Task<Error> explain(Error error);

  // Ends the sandbox unless it is to be kept. A signal during that gives up waiting, not the removal.
  Task<> clean_up(Signals& signals);

 private:
  Task<Result<void>> begin(Api::PullWatch watch);
  Task<Result<void>> until_running(Api::PullWatch watch);
  Task<Result<void>> renew_once();

  Api api_;
  NewSandbox what_;
  Afterwards afterwards_;
  std::string id_;
  json::bj::object first_;  // what the server answered
  WallTime first_expiry_{};
  std::chrono::steady_clock::time_point created_;
};

// For io::race(): the outcome of a task in a variable of the caller.
template <class T>
Task<> store(std::optional<Result<T>>* into, Task<Result<T>> task) {
  into->emplace(co_await std::move(task));
}

}  // namespace osb::cli
