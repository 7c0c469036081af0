#include "cli/scratch_sandbox.h"

#include <fmt/format.h>

#include "json/decode.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
namespace bj = json::bj;

constexpr auto kLease = 60s;  // as short as a server may demand, so within what every server allows
constexpr auto kRenewEvery = 20s;
constexpr auto kRetryEvery = 5s;

// The state of a sandbox in the server's words, for people.
std::string describe_state(const bj::object& sandbox) {
  const auto* status = sandbox.if_contains("status");
  if (!status || !status->is_object()) return "in an unknown state";
  std::string out = text_of(status->as_object(), "state").value_or("in an unknown state");
  for (const char* member : {"reason", "message"}) {
    if (auto text = text_of(status->as_object(), member)) out += ": " + *text;
  }
  return out;
}

bool is_in(const bj::object& sandbox, std::string_view state) {
  const auto* status = sandbox.if_contains("status");
  return status && status->is_object() && text_of(status->as_object(), "state").value_or("") == state;
}

}  // namespace

Task<Result<void>> ScratchSandbox::create(Signals& signals, PullLine& line) {
  Api::PullWatch watch;
  if (line.is_shown()) watch = [&line](const bj::value& state) { line.follow(state); };
  std::optional<Result<void>> made;
  if (co_await io::race(store(&made, begin(watch)), signals.more_than(1)) == 1) made.reset();
  if (made && *made && signals.count() == 0) {
    made.reset();
    if (co_await io::race(store(&made, until_running(watch)), signals.more_than(0)) == 1) made.reset();
  }
  line.clear();
  if (!made || (*made && signals.count() > 0)) co_return fail(Code::cancelled, "interrupted");
  co_return std::move(*made);
}

Task<Result<void>> ScratchSandbox::begin(Api::PullWatch watch) {
  bool keep = afterwards_ == Afterwards::keep;
  what_.timeout = keep ? std::nullopt : std::optional(kLease);
  created_ = Steady::now();
  first_ = CO_TRY(co_await api_.begin(what_, std::move(watch)));
  id_ = CO_TRY(text_of(first_, "id"));
  if (!keep) first_expiry_ = CO_TRY(parse_time(CO_TRY(text_of(first_, "expiresAt"))));
  co_return Result<void>{};
}

// An image may take longer than a lease.
Task<Result<void>> ScratchSandbox::until_running(Api::PullWatch watch) {
  if (is_in(first_, "Running")) co_return Result<void>{};
  std::optional<Result<bj::object>> started;
  auto waiting = api_.until_started(std::move(first_), what_.image, std::move(watch));
  if (co_await io::race(store(&started, std::move(waiting)), keep_lease()) == 1)
    co_return fail(Code::unavailable, "lost the connection to the server for a minute");
  if (!started) co_return fail(Code::cancelled, "interrupted");
  CO_TRY(std::move(*started));
  co_return Result<void>{};
}

Task<Result<void>> ScratchSandbox::renew_once() {
  if (afterwards_ == Afterwards::keep) {
    CO_TRY(co_await api_.get(id_));
    co_return Result<void>{};
  }
  // The server's clock plus the time that went by: ours may show another time.
  auto expiry =
      first_expiry_ + std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - created_);
  co_return co_await api_.renew(id_, format_api_time(expiry));
}

Task<> ScratchSandbox::keep_lease() {
  for (;;) {
    co_await io::sleep_for(kRenewEvery);
    auto last_good = Steady::now() - kRenewEvery;
    while (!co_await renew_once()) {
      if (Steady::now() - last_good > kLease) co_return;
      co_await io::sleep_for(kRetryEvery);
    }
  }
}

Task<Error> ScratchSandbox::explain(Error error) {
  auto sandbox = co_await api_.get(id_);
  if (!sandbox && sandbox.error().code == Code::not_found) {
    co_return Error{error.code, 0, "the sandbox is gone: it was removed or has expired"};
  }
  // That it runs explains nothing.
  if (sandbox && !is_in(*sandbox, "Running"))
    error.message += "\n  cause: the sandbox is " + describe_state(*sandbox);
  co_return error;
}

Task<> ScratchSandbox::clean_up(Signals& signals) {
  if (id_.empty()) co_return;
  if (afterwards_ == Afterwards::keep) {
    fmt::print(stderr, "osb: sandbox {} is kept and never expires; remove it with: osb rm {}\n", id_, id_);
    co_return;
  }
  std::optional<Result<void>> removed;
  int winner = co_await io::race(store(&removed, api_.remove(id_)), signals.more_than(signals.count()));
  if (winner == 0 && (*removed || removed->error().code == Code::not_found)) co_return;
  std::string why = winner == 0 ? removed->error().message : "interrupted";
  fmt::print(
      stderr,
      "osb: sandbox {} was not removed: {}\n  remedy: osb rm {}; it expires by itself within a minute\n", id_,
      why, id_);
}

}  // namespace osb::cli
