#include "runtime/native/start_entry.h"

#include "base/last_words.h"
#include "runtime/native/exit_status.h"

namespace osb::runtime {
namespace {

constexpr auto kStartDeadline = std::chrono::seconds(20);

std::unexpected<CreateFailure> failed(CreateFailure::Kind kind, Error error) {
  return std::unexpected(CreateFailure{kind, std::move(error)});
}

}  // namespace

Task<Created<std::optional<ControlState>>> start_through(ControlConnection& control, EntryProcess entry) {
  // execd says "waiting" first; the entry process may be sent before that arrives.
  auto sent = co_await control.start(std::move(entry));
  if (!sent) co_return failed(CreateFailure::Kind::step_failed, std::move(sent).error().in("start execd"));
  co_return co_await hear_started(control);
}

Task<Created<std::optional<ControlState>>> hear_started(ControlConnection& control,
                                                        std::optional<ControlState> first) {
  using Kind = CreateFailure::Kind;
  while (true) {
    auto state = first ? Result<ControlState>(*std::exchange(first, std::nullopt))
                       : co_await io::with_deadline(kStartDeadline, "execd", control.next());
    if (!state) co_return failed(Kind::step_failed, std::move(state).error().in("start execd"));
    if (state->kind == ControlState::Kind::waiting) continue;
    if (state->kind == ControlState::Kind::running) {
      // Nobody waits for what comes next, but an end that is known is not kept from the client.
      if (control.has_more()) continue;
      co_return std::nullopt;
    }
    if (state->kind == ControlState::Kind::ended) {
      End end = describe_end(*state);
      if (end.kind != End::Kind::exited || end.number != 0) {
        std::string said = last_words(end.output, "\n");
        std::string how = end.detail + (said.empty() ? "" : "; its last output:\n" + said);
        co_return failed(Kind::entry_ended, Error{Code::invalid_argument, 0, std::move(how)});
      }
      co_return std::move(*state);  // it has done what it was for
    }
    co_return failed(Kind::bad_entrypoint,
                     Error{Code::invalid_argument, state->sys_errno, why_not_started(*state)});
  }
}

}  // namespace osb::runtime
