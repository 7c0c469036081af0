#include "sandbox/transitions.h"

namespace osb::sandbox {
namespace {

struct Row {
  Verb verb;
  State from;
  Transition transition;
};

using enum State;

constexpr Row kTable[] = {
    {Verb::start, pending, {pending, running}},

    {Verb::pause, running, {pausing, paused}},

    {Verb::resume, paused, {resuming, running}},
    // An earlier change did not get to its end: thawing is right whatever it was.
    {Verb::resume, pausing, {resuming, running}},
    {Verb::resume, resuming, {resuming, running}},
    // The row may be wrong, after a change that could not be stored: the runtime knows.
    {Verb::resume, running, {running, running}},

    {Verb::exit, pending, {pending, terminated}},
    {Verb::exit, running, {running, terminated}},
    {Verb::exit, pausing, {pausing, terminated}},
    {Verb::exit, paused, {paused, terminated}},
    {Verb::exit, resuming, {resuming, terminated}},
    {Verb::fail, pending, {pending, failed}},
    {Verb::fail, running, {running, failed}},
    {Verb::fail, pausing, {pausing, failed}},
    {Verb::fail, paused, {paused, failed}},
    {Verb::fail, resuming, {resuming, failed}},

    {Verb::remove, pending, {stopping, stopping}},
    {Verb::remove, running, {stopping, stopping}},
    {Verb::remove, pausing, {stopping, stopping}},
    {Verb::remove, paused, {stopping, stopping}},
    {Verb::remove, resuming, {stopping, stopping}},
    {Verb::remove, terminated, {stopping, stopping}},
    {Verb::remove, failed, {stopping, stopping}},
    // One that is under way is waited for.
    {Verb::remove, stopping, {stopping, stopping}},

    // One that is being removed is gone for whoever wants to change it.
    {Verb::edit, pending, {pending, pending}},
    {Verb::edit, running, {running, running}},
    {Verb::edit, pausing, {pausing, pausing}},
    {Verb::edit, paused, {paused, paused}},
    {Verb::edit, resuming, {resuming, resuming}},
    {Verb::edit, terminated, {terminated, terminated}},
    {Verb::edit, failed, {failed, failed}},

    {Verb::reach, running, {running, running}},
};

}  // namespace

std::optional<Transition> transition(Verb verb, State from) {
  for (const Row& row : kTable) {
    if (row.verb == verb && row.from == from) return row.transition;
  }
  return std::nullopt;
}

}  // namespace osb::sandbox
