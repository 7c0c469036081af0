#pragma once

// Where a sandbox is in its life, since when, and why.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace osb::sandbox {

enum class State { pending, running, pausing, paused, resuming, stopping, terminated, failed };
inline constexpr State kStates[] = {State::pending,  State::running,  State::pausing,    State::paused,
                                    State::resuming, State::stopping, State::terminated, State::failed};
std::string_view to_string(State state);                 // Pending, Running, ...
std::optional<State> state_from(std::string_view word);  // in any case

// Why a sandbox is in its state. New ones go to the table in status.cc as well, and stay there for ever:
// rows have their words.
enum class Reason {
  none,  // a row from elsewhere may have none
  starting,
  running,
  pausing,
  paused,
  resuming,
  deleted,
  expired,
  entrypoint_exited,
  entrypoint_failed,
  killed_by_signal,
  out_of_memory,
  host_restarted,
  lost,
  start_failed,  // after its creation had been announced
  damaged,       // what was stored of its state could not be read
  idle,          // paused because nobody used it: a use wakes it
};
std::string_view to_string(Reason reason);                 // STARTING, ...; "" for none
std::optional<Reason> reason_from(std::string_view word);  // exactly

struct Status {
  State state = State::pending;
  Reason reason = Reason::none;
  std::string message = {};
  WallTime changed = {};
};

// Of a state that says by itself why: Pending, Running, and those of a pause.
Status status_while(State state, WallTime since);

}  // namespace osb::sandbox
