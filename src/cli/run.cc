#include "cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>

#include "cli/api_error.h"
#include "cli/scratch_sandbox.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kOwnFailure = 125;         // osb failed, not the command
constexpr int kOutputClosed = 128 + 13;  // as if SIGPIPE had ended us

// One run: what is known about it so far. Lives in the frame of run_in_sandbox.
struct Run {
  RunOptions options;
  ScratchSandbox sandbox;
  bool output_closed = false;  // whoever read our output has gone
};

ScratchSandbox sandbox_for(const RunOptions& options) {
  NewSandbox what{.image = options.image,
                  .env = options.env,
                  .cpu = options.cpu,
                  .memory = options.memory,
                  .network = options.network,
                  .timeout = std::nullopt,
                  .shm = options.shm,
                  .volumes = options.volumes};
  using Afterwards = ScratchSandbox::Afterwards;
  return {options.connection, std::move(what), options.keep ? Afterwards::keep : Afterwards::remove};
}

OutputSink to_terminal(Run& run, Signals& signals) {
  return [&](const StreamEvent& event) {
    auto written = write_event(event, signals);
    run.output_closed = !written && written.error().sys_errno == EPIPE;
    return written;
  };
}

// The command's exit status, or an Error that says why there is none. The caller looks at the signals first.
Task<Result<int>> execute(Run& run, Signals& signals) {
  CommandRequest what{
      .argv = run.options.command, .workdir = run.options.workdir, .timeout = run.options.timeout};
  std::optional<Result<StreamEvent>> last;
  auto started = Steady::now();
  auto stream = run.sandbox.api().run(run.sandbox.id(), std::move(what), to_terminal(run, signals));
  int winner = co_await io::race(store(&last, std::move(stream)), run.sandbox.keep_lease());
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

}  // namespace

Task<int> run_in_sandbox(RunOptions options) {
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return kOwnFailure;
  }
  Run run{.options = options, .sandbox = sandbox_for(options)};

  // A first signal waits for the answer, which has the id to clean up with; a second one does not.
  std::optional<Result<void>> created;
  if (co_await io::race(store(&created, run.sandbox.create()), signals->more_than(1)) == 1) {
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
    co_await run.sandbox.clean_up(*signals);
    co_return 128 + *signals->first();
  }
  if (!*status && !run.output_closed) {
    print_error("osb", *created ? co_await run.sandbox.explain(status->error()) : status->error());
  }
  co_await run.sandbox.clean_up(*signals);
  if (run.output_closed) co_return kOutputClosed;
  co_return status->value_or(kOwnFailure);
}

}  // namespace osb::cli
