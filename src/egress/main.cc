#include "egress/main.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <exception>

#include "base/log.h"
#include "base/strings.h"
#include "egress/daemon.h"
#include "egress/sidecar.h"
#include "launcher/egress_process.h"

namespace osb::egress {
namespace {

Result<Fd> inherited(int fd) {
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) return fail_errno("descriptor " + std::to_string(fd));
  return Fd(fd);
}

Result<DaemonOptions> daemon_options(const std::vector<std::string>& arguments) {
  DaemonOptions out;
  for (const std::string& argument : arguments) {
    size_t equals = argument.find('=');
    std::string_view name = std::string_view(argument).substr(0, equals);
    std::string value = equals == argument.npos ? "" : argument.substr(equals + 1);
    if (name == "--name-server")
      out.name_servers.push_back(TRY(parse_name_server(value)));
    else if (name == "--deny")
      out.overlay.deny.push_back(TRY(make_rule("deny", value)));
    else if (name == "--allow")
      out.overlay.allow.push_back(TRY(make_rule("allow", value)));
    else if (name == "--deny-webhook")
      out.deny_webhook = TRY(sandbox::parse_webhook(value));
    else if (name == "--log-level")
      log::set_level(log::level_from(value));
    else
      return fail(Code::invalid_argument, "unknown argument; it is started by opensandbox-server");
  }
  out.listener = TRY(inherited(launcher::kEgressListenerFd));
  out.launcher = TRY(inherited(launcher::kEgressLauncherFd));
  out.directory = TRY(inherited(launcher::kEgressDirectoryFd));
  return out;
}

int until_done(io::Task<Result<void>> task) {
  io::asio::io_context loop(1);
  int status = 0;
  io::asio::co_spawn(loop, std::move(task),
                     [&status](const std::exception_ptr& thrown, const Result<void>& served) {
                       if (thrown) std::rethrow_exception(thrown);  // a bug: nothing of ours throws
                       if (served) return;
                       log::error(served.error().message);
                       status = 1;
                     });
  loop.run();
  return status;
}

int sidecar_main(Fd carrier) {
  std::vector<std::string> environment;
  for (char** one = environ; *one != nullptr; ++one) environment.emplace_back(*one);
  // The network is closed before anything else can go wrong.
  auto gate = close_the_network(environment);
  auto settings = gate ? sidecar_settings(environment) : std::unexpected(gate.error());
  if (settings && settings->deny_webhook && settings->deny_webhook->tls && !carrier.valid())
    settings = fail(Code::invalid_argument,
                    "OPENSANDBOX_EGRESS_DENY_WEBHOOK: https:// needs `osb egress serve`, which speaks TLS");
  if (!settings) {
    log::error(settings.error().message);
    return 1;
  }
  return until_done(run_sidecar(std::move(*gate), std::move(*settings), std::move(carrier)));
}

}  // namespace

int egress_main(const std::vector<std::string>& arguments) {
  log::set_role("egress");
  ::prctl(PR_SET_NAME, "osb-egress");
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);
  if (!arguments.empty() && arguments[0] == kSidecarArgument) {
    // What comes behind it is a number of `osb egress serve`; anything else is nobody there.
    auto number = arguments.size() == 2 ? parse_number<int>(arguments[1]) : std::nullopt;
    auto carrier = number && *number > STDERR_FILENO ? inherited(*number) : Result<Fd>(Fd());
    return sidecar_main(carrier ? std::move(*carrier) : Fd());
  }
  auto options = daemon_options(arguments);
  if (!options) {
    log::error(options.error().message);
    return launcher::kCannotStart;
  }
  return until_done(run(std::move(*options)));
}

}  // namespace osb::egress
