#include "cli/egress_serve.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "cli/block_on.h"
#include "server/webhook_carrier.h"
#include "sys/caps.h"
#include "sys/memfd.h"

namespace osb::cli {
namespace {

io::Task<int> carry(Fd control, sandbox::Webhook hook) {
  (void)co_await server::carry_sidecars_denials(std::move(control), std::move(hook));
  co_return 0;
}

// The sidecar itself has no TLS. For a webhook that wants it this process stays, as a child without any
// right, and posts on connections that it is given. What comes back is the sidecar's end of the channel to
// it.
Result<Fd> start_carrier() {
  const char* url = std::getenv("OPENSANDBOX_EGRESS_DENY_WEBHOOK");
  auto hook = url != nullptr ? sandbox::parse_webhook(trim(url)) : fail(Code::not_found, "there is none");
  // What is wrong with it the sidecar says, when the network is closed.
  if (!hook || !hook->tls) return Fd();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) return fail_errno("socketpair");
  Fd ours(pair[0]), theirs(pair[1]);
  pid_t parent = ::getpid();
  pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child > 0) {
    if (::fcntl(ours.get(), F_SETFD, 0) < 0) return fail_errno("fcntl");
    return ours;
  }
  ours.reset();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sys::set_capabilities({}) < 0)
    ::_exit(1);
  ::signal(SIGPIPE, SIG_IGN);
  ::_exit(block_on(carry(std::move(theirs), std::move(*hook))));
}

}  // namespace

int become_sidecar(std::string_view program) {
  auto executable = sys::sealed_executable("osb-egress", program);
  auto carrier = executable ? start_carrier() : Result<Fd>(std::unexpected(executable.error()));
  if (!carrier) {
    fmt::print(stderr, "osb egress serve: {}\n", carrier.error().message);
    return 1;
  }
  char name[] = "osb-egress", what[] = "sidecar";
  std::string number = std::to_string(carrier->get());
  char* const arguments[] = {name, what, carrier->valid() ? number.data() : nullptr, nullptr};
  ::fexecve(executable->get(), arguments, environ);
  fmt::print(stderr, "osb egress serve: the carried program cannot be run: {}\n", std::strerror(errno));
  return 1;
}

}  // namespace osb::cli
