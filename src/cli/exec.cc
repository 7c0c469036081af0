#include "cli/exec.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>

#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/program.h"
#include "cli/scratch_sandbox.h"
#include "cli/shell.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

constexpr int kOwnFailure = 125;

Task<Result<int>> execute(const ExecOptions& options, Api& api, Signals* signals) {
  std::string id = CO_TRY(co_await api.find(options.id));
  CO_TRY(co_await api.unlock(id));
  ProgramRequest what{
      .argv = options.command, .line = "", .workdir = options.workdir, .env = {}, .ids = options.user};
  if (options.terminal) {
    std::optional<Result<int>> status;
    auto running = open_terminal_of(api, id, std::move(what), Leaving::yes);
    if (co_await io::race(store(&status, std::move(running)), signals->more_than(0)) == 1)
      co_return fail(Code::cancelled, "interrupted");
    co_return std::move(*status);
  }
  Program program{.what = std::move(what), .input = options.input, .timeout = options.timeout, .last = false};
  co_return co_await run_program(api, id, std::move(program), *signals);
}

}  // namespace

io::Task<int> run_in_existing(ExecOptions options) {
  auto signals = Signals::create(co_await io::asio::this_coro::executor);
  if (!signals) {
    print_error("osb", signals.error());
    co_return kOwnFailure;
  }
  Api api(options.connection);
  auto status = co_await execute(options, api, &*signals);
  if (status) co_return *status;
  if (status.error().sys_errno == EPIPE) co_return 128 + 13;
  if (signals->first()) co_return 128 + *signals->first();
  print_error("osb", status.error());
  co_return kOwnFailure;
}

}  // namespace osb::cli
