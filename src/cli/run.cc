#include "cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>

#include "base/clock.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
namespace bj = json::bj;

constexpr int kOwnFailure = 125;         // osb failed, not the command
constexpr int kOutputClosed = 128 + 13;  // as if SIGPIPE had ended us

// The sandbox expires by itself when nobody renews it: a killed osb leaves nothing behind for longer than
// this. As short as any server allows, and so within what every server allows.
constexpr auto kLease = 60s;
constexpr auto kRenewEvery = 20s;
constexpr auto kRetryEvery = 5s;
constexpr auto kStartTime = 300s;

template <class T>
Task<> store(std::optional<Result<T>>* into, Task<Result<T>> task) {
  into->emplace(co_await std::move(task));
}

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

bool is_pending(const bj::object& sandbox) {
  const auto* status = sandbox.if_contains("status");
  return status && status->is_object() && text_of(status->as_object(), "state").value_or("") == "Pending";
}

// One run: what is known about it so far. Lives in the frame of run_in_sandbox.
struct Run {
  RunOptions options;
  Api api;
  std::string id;
  WallTime first_expiry{};
  Steady::time_point created;
  bool output_closed = false;  // whoever read our output has gone
};

Task<Result<void>> create(Run& run) {
  NewSandbox what{.image = run.options.image,
                  .env = run.options.env,
                  .cpu = run.options.cpu,
                  .memory = run.options.memory,
                  .timeout = std::nullopt};
  if (!run.options.keep) what.timeout = kLease;
  run.created = Steady::now();
  auto sandbox = CO_TRY(co_await run.api.create(std::move(what)));
  run.id = CO_TRY(text_of(sandbox, "id"));
  if (!run.options.keep) run.first_expiry = CO_TRY(parse_time(CO_TRY(text_of(sandbox, "expiresAt"))));
  while (is_pending(sandbox)) {  // the image is being fetched
    if (Steady::now() - run.created > kStartTime)
      co_return fail(Code::timeout, "the sandbox did not start within 5 minutes");
    co_await io::sleep_for(200ms);
    sandbox = CO_TRY(co_await run.api.get(run.id));
  }
  co_return Result<void>{};
}

Task<Result<void>> renew_once(Run& run) {
  if (run.options.keep) {
    CO_TRY(co_await run.api.get(run.id));
    co_return Result<void>{};
  }
  // The server's clock plus the time that went by: ours may show another time.
  auto expiry =
      run.first_expiry + std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - run.created);
  co_return co_await run.api.renew(run.id, format_api_time(expiry));
}

// Renews the lease for ever; returns only when the server could not be reached for a whole lease. So it also
// bounds the wait for a stream whose server has vanished.
Task<> keep_lease(Run& run) {
  for (;;) {
    co_await io::sleep_for(kRenewEvery);
    auto last_good = Steady::now() - kRenewEvery;
    while (!co_await renew_once(run)) {
      if (Steady::now() - last_good > kLease) co_return;
      co_await io::sleep_for(kRetryEvery);
    }
  }
}

OutputSink to_terminal(Run& run, Signals& signals) {
  return [&](const StreamEvent& event) {
    int fd = event.kind == StreamEvent::Kind::output ? STDOUT_FILENO : STDERR_FILENO;
    auto written = write_unless_signalled(fd, event.text, signals);
    run.output_closed = !written && written.error().sys_errno == EPIPE;
    return written;
  };
}

// Why a stream broke: the sandbox may have ended under it.
Task<Error> explain(Run& run, Error error) {
  auto sandbox = co_await run.api.get(run.id);
  if (!sandbox && sandbox.error().code == Code::not_found) {
    co_return Error{error.code, 0, "the sandbox is gone: it was removed or has expired"};
  }
  if (sandbox) error.message += "\n  cause: the sandbox is " + describe_state(*sandbox);
  co_return error;
}

// The command's exit status, or an Error that says why there is none. The caller looks at the signals first.
Task<Result<int>> execute(Run& run, Signals& signals) {
  CommandRequest what{
      .argv = run.options.command, .workdir = run.options.workdir, .timeout = run.options.timeout};
  std::optional<Result<StreamEvent>> last;
  auto started = Steady::now();
  int winner = co_await io::race(
      store(&last, run.api.run(run.id, std::move(what), to_terminal(run, signals))), keep_lease(run));
  if (winner == 1) co_return fail(Code::unavailable, "lost the connection to the server for a minute");
  if (!*last) co_return std::unexpected(last->error());
  auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - started);
  CommandEnd end = end_from(**last, run.options.timeout, elapsed);
  if (!end.problem.empty()) fmt::print(stderr, "osb: {}\n", end.problem);
  co_return end.status;
}

Task<> execute_into(Run& run, Signals& signals, std::optional<Result<int>>* into) {
  into->emplace(co_await execute(run, signals));
}

// Ends the sandbox unless it is to be kept. A signal during that gives up waiting, not the removal.
Task<> clean_up(Run& run, Signals& signals) {
  if (run.id.empty()) co_return;
  if (run.options.keep) {
    fmt::print(stderr, "osb: sandbox {} is kept; remove it with: osb rm {}\n", run.id, run.id);
    co_return;
  }
  std::optional<Result<void>> removed;
  int winner = co_await io::race(store(&removed, run.api.remove(run.id)), signals.more_than(signals.count()));
  if (winner == 0 && (*removed || removed->error().code == Code::not_found)) co_return;
  std::string why = winner == 0 ? removed->error().message : "interrupted";
  fmt::print(
      stderr,
      "osb: sandbox {} was not removed: {}\n  remedy: osb rm {}; it expires by itself within a minute\n",
      run.id, why, run.id);
}

}  // namespace

Task<int> run_in_sandbox(RunOptions options) {
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return kOwnFailure;
  }
  Run run{.options = options, .api = Api(options.connection), .id = {}, .created = {}};

  // A first signal waits for the answer, which has the id to clean up with; a second one does not.
  std::optional<Result<void>> created;
  if (co_await io::race(store(&created, create(run)), signals->more_than(1)) == 1) {
    fmt::print(stderr, "osb: interrupted while the sandbox was being created; see: osb ls\n");
    co_return 128 + *signals->first();
  }

  std::optional<Result<int>> status;
  if (!*created) {
    status = std::unexpected(created->error());
  } else if (signals->count() == 0) {
    co_await io::race(execute_into(run, *signals, &status), signals->more_than(0));
  }

  if (signals->first()) {
    co_await clean_up(run, *signals);
    co_return 128 + *signals->first();
  }
  if (!*status && !run.output_closed) {
    print_error("osb", *created ? co_await explain(run, status->error()) : status->error());
  }
  co_await clean_up(run, *signals);
  if (run.output_closed) co_return kOutputClosed;
  co_return status->value_or(kOwnFailure);
}

}  // namespace osb::cli
