#include "sandbox/status.h"

#include <utility>

#include "base/strings.h"

namespace osb::sandbox {
namespace {

constexpr std::pair<State, std::string_view> kStateWords[] = {
    {State::pending, "Pending"},       {State::running, "Running"},   {State::pausing, "Pausing"},
    {State::paused, "Paused"},         {State::resuming, "Resuming"}, {State::stopping, "Stopping"},
    {State::terminated, "Terminated"}, {State::failed, "Failed"},
};

constexpr std::pair<Reason, std::string_view> kReasonWords[] = {
    {Reason::none, ""},
    {Reason::starting, "STARTING"},
    {Reason::running, "RUNNING"},
    {Reason::pausing, "PAUSING"},
    {Reason::paused, "PAUSED"},
    {Reason::resuming, "RESUMING"},
    {Reason::deleted, "DELETED"},
    {Reason::expired, "EXPIRED"},
    {Reason::entrypoint_exited, "ENTRYPOINT_EXITED"},
    {Reason::entrypoint_failed, "ENTRYPOINT_FAILED"},
    {Reason::killed_by_signal, "KILLED_BY_SIGNAL"},
    {Reason::out_of_memory, "OUT_OF_MEMORY"},
    {Reason::host_restarted, "HOST_RESTARTED"},
    {Reason::lost, "LOST"},
    {Reason::start_failed, "START_FAILED"},
    {Reason::damaged, "DAMAGED"},
    {Reason::idle, "IDLE"},
};

}  // namespace

std::string_view to_string(State state) {
  for (auto& [value, word] : kStateWords) {
    if (value == state) return word;
  }
  return "Failed";
}

std::optional<State> state_from(std::string_view word) {
  for (auto& [value, name] : kStateWords) {
    if (iequals(name, word)) return value;
  }
  return std::nullopt;
}

std::string_view to_string(Reason reason) {
  for (auto& [value, word] : kReasonWords) {
    if (value == reason) return word;
  }
  return "";
}

std::optional<Reason> reason_from(std::string_view word) {
  for (auto& [value, name] : kReasonWords) {
    if (name == word) return value;
  }
  return std::nullopt;
}

Status status_while(State state, WallTime since) {
  switch (state) {
    case State::pending:
      return {state, Reason::starting, "The sandbox is being started.", since};
    case State::running:
      return {state, Reason::running, "The sandbox is running.", since};
    case State::pausing:
      return {state, Reason::pausing, "The processes of the sandbox are being stopped.", since};
    case State::paused:
      return {state, Reason::paused, "Every process of the sandbox is stopped.", since};
    case State::resuming:
      return {state, Reason::resuming, "The processes of the sandbox go on.", since};
    case State::stopping:
    case State::terminated:
    case State::failed:
      break;
  }
  return {state, Reason::none, "", since};
}

}  // namespace osb::sandbox
