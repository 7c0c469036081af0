#include "cli/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>

#include "cli/api_error.h"
#include "cli/program.h"
#include "cli/scratch_sandbox.h"
#include "cli/shell.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr int kOwnFailure = 125;         // osb failed, not the command
constexpr int kOutputClosed = 128 + 13;  // as if SIGPIPE had ended us

// One run: what is known about it so far. Lives in the frame of run_in_sandbox.
struct Run {
  RunOptions options;
  ScratchSandbox sandbox;
  bool output_closed = false;  // whoever read our output has gone
};

NewSandbox sandbox_of(const RunOptions& options) {
  return {.image = options.image,
          .env = options.env,
          .cpu = options.cpu,
          .memory = options.memory,
          .disk = options.disk,
          .network = options.network,
          .timeout = std::nullopt,
          .shm = options.shm,
          .volumes = options.volumes,
          .name = options.name,
          .pids = options.pids,
          .runtime = options.runtime};
}

ScratchSandbox sandbox_for(const RunOptions& options) {
  using Afterwards = ScratchSandbox::Afterwards;
  return {options.connection, sandbox_of(options), options.keep ? Afterwards::keep : Afterwards::remove};
}

// The command's exit status, or an Error that says why there is none.
Task<Result<int>> command_of(Run& run, Signals& signals) {
  const RunOptions& options = run.options;
  ProgramRequest what{
      .argv = options.command, .line = "", .workdir = options.workdir, .env = {}, .ids = options.user};
  if (options.terminal)
    return open_terminal_of(run.sandbox.api(), run.sandbox.id(), std::move(what), Leaving::no);
  Program program{
      .what = std::move(what), .input = options.input, .timeout = options.timeout, .last = !options.keep};
  return run_program(run.sandbox.api(), run.sandbox.id(), std::move(program), signals);
}

// A program with a terminal gets Ctrl-C as a key; the signals that come here end it. The others have them
// passed on.
Task<> until_lost(Run& run, Signals& signals) {
  if (run.options.terminal)
    co_await io::race(run.sandbox.keep_lease(), signals.more_than(0));
  else
    co_await run.sandbox.keep_lease();
}

Task<Result<int>> execute(Run& run, Signals& signals) {
  std::optional<Result<int>> status;
  if (co_await io::race(store(&status, command_of(run, signals)), until_lost(run, signals)) == 1)
    co_return fail(Code::unavailable, "lost the connection to the server for a minute");
  run.output_closed = !*status && status->error().sys_errno == EPIPE;
  co_return std::move(*status);
}

// Nobody waits for it: the command is the sandbox's own life.
Task<int> start_detached(RunOptions options) {
  Api api(options.connection);
  NewSandbox what = sandbox_of(options);
  what.entrypoint = options.command;
  what.timeout = options.ttl;
  PullLine line(PullLine::Wanted::yes);
  Api::PullWatch watch;
  if (line.is_shown()) watch = [&line](const json::bj::value& state) { line.follow(state); };
  auto made = co_await api.create(std::move(what), std::move(watch));
  line.clear();
  auto id = made ? text_of(*made, "id") : std::unexpected(made.error());
  if (id) {
    fmt::print("{}\n", *id);
    co_return 0;
  }
  print_error("osb", id.error());
  co_return kOwnFailure;
}

}  // namespace

Task<int> run_in_sandbox(RunOptions options) {
  if (options.detach) co_return co_await start_detached(std::move(options));
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return kOwnFailure;
  }
  Run run{.options = options, .sandbox = sandbox_for(options)};

  PullLine line(PullLine::Wanted::yes);
  auto created = co_await run.sandbox.create(*signals, line);
  if (!created && created.error().code == Code::cancelled && run.sandbox.id().empty()) {
    fmt::print(stderr, "osb: interrupted while the sandbox was being created; see: osb ls\n");
    co_return 128 + *signals->first();
  }

  std::optional<Result<int>> status;
  if (!created) {
    status = std::unexpected(created.error());
  } else if (signals->count() == 0) {
    status = co_await execute(run, *signals);
  }

  // Interrupted before the command began, or again after it was told.
  if (signals->first() && (!status || !*status)) {
    co_await run.sandbox.clean_up(*signals);
    co_return 128 + *signals->first();
  }
  if (!*status && !run.output_closed) {
    print_error("osb", created ? co_await run.sandbox.explain(status->error()) : status->error());
  }
  co_await run.sandbox.clean_up(*signals);
  if (run.output_closed) co_return kOutputClosed;
  co_return status->value_or(kOwnFailure);
}

}  // namespace osb::cli
