#include "cli/exec.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>

#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/scratch_sandbox.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

using Steady = std::chrono::steady_clock;

constexpr int kOwnFailure = 125;

struct Exec {
  ExecOptions options;
  Api api;
  Signals& signals;
  io::Event started;
  std::string id = {}, command = {};  // the latter when it has started
};

// Passes the first interrupt on, as soon as there is a command to interrupt; returns with the second.
Task<> pass_interrupts(Exec& exec) {
  co_await exec.signals.more_than(0);
  co_await io::race(exec.started.wait(), exec.signals.more_than(1));
  if (!exec.command.empty()) (void)co_await exec.api.interrupt_command(exec.id, exec.command);
  co_await exec.signals.more_than(1);
}

Task<Result<int>> execute(Exec& exec) {
  exec.id = CO_TRY(co_await exec.api.find(exec.options.id));
  CO_TRY(co_await exec.api.unlock(exec.id));
  CommandRequest what{
      .argv = exec.options.command, .workdir = exec.options.workdir, .timeout = exec.options.timeout};
  what.started = [&exec](const std::string& id) {
    exec.command = id;
    exec.started.set();
  };
  // What is still said after an interrupt is wanted, too.
  OutputSink sink = [&exec](const StreamEvent& event) {
    return write_event(event, exec.signals, exec.signals.count());
  };
  std::optional<Result<StreamEvent>> last;
  auto started = Steady::now();
  auto stream = exec.api.run(exec.id, std::move(what), sink);
  if (co_await io::race(store(&last, std::move(stream)), pass_interrupts(exec)) == 1)
    co_return 128 + exec.signals.first().value_or(0);
  if (!*last) co_return std::unexpected(last->error());
  auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - started);
  CommandEnd end = end_from(**last, exec.options.timeout, elapsed);
  if (!end.problem.empty()) fmt::print(stderr, "osb: {}\n", end.problem);
  co_return end.status;
}

}  // namespace

io::Task<int> run_in_existing(ExecOptions options) {
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return kOwnFailure;
  }
  Exec exec{.options = options,
            .api = Api(options.connection),
            .signals = *signals,
            .started = io::Event(co_await io::asio::this_coro::executor)};
  auto status = co_await execute(exec);
  if (status) co_return *status;
  if (status.error().sys_errno == EPIPE) co_return 128 + 13;
  print_error("osb", status.error());
  co_return kOwnFailure;
}

}  // namespace osb::cli
