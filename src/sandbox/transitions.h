#pragma once

// The one table of a sandbox's life: which state allows which verb, and what the sandbox becomes by it.

#include <optional>

#include "sandbox/status.h"

namespace osb::sandbox {

enum class Verb {
  start,   // its entry process runs
  pause,   // stop every process
  resume,  // let them go on
  exit,    // the entry process ended well
  fail,    // it ended otherwise
  remove,  // at somebody's request, or because its time is up
  edit,    // metadata, expiry
  reach,   // talk to what runs inside
};
inline constexpr Verb kVerbs[] = {Verb::start, Verb::pause,  Verb::resume, Verb::exit,
                                  Verb::fail,  Verb::remove, Verb::edit,   Verb::reach};

struct Transition {
  State during;  // while it is under way
  State after;   // when it is done; a removal ends with no sandbox at all

  bool operator==(const Transition&) const = default;
};

// Nothing: this state does not allow it.
std::optional<Transition> transition(Verb verb, State from);
inline bool allows(State from, Verb verb) { return transition(verb, from).has_value(); }

}  // namespace osb::sandbox
