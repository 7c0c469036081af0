#include "egress/sidecar.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/log.h"
#include "base/strings.h"
#include "egress/attachment.h"
#include "egress/metrics.h"
#include "egress/operator_files.h"
#include "egress/policy_routes.h"
#include "http/server.h"
#include "io/descriptor.h"
#include "sys/caps.h"
#include "sys/descriptors.h"

namespace osb::egress {
namespace {

using io::Task;

constexpr char kRulesDirectory[] = "/var/egress/rules";
constexpr std::string_view kAuthHeader = "OPENSANDBOX-EGRESS-AUTH";
constexpr auto kLookAgain = std::chrono::seconds(5);
constexpr int kBacklog = 128;
constexpr size_t kDescriptors = 1 << 16;

// How many connections there may be; see Load.
size_t raise_descriptor_limit() {
  struct rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return 1024;
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, kDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

Result<Fd> listen_for_api(const SidecarSettings& settings) {
  if (!settings.api_host.empty()) return io::listen_tcp(settings.api_host, settings.api_port, kBacklog);
  auto both = io::listen_tcp("::", settings.api_port, kBacklog);
  if (both || both.error().sys_errno == EADDRINUSE) return both;
  return io::listen_tcp("0.0.0.0", settings.api_port, kBacklog);  // no IPv6 here
}

class Sidecar {
 public:
  Sidecar(const io::Executor& executor, const sys::PacketBadge& badge, SidecarSettings& settings,
          Overlay overlay, AlwaysFiles always)
      : settings_(settings),
        overlay_(std::move(overlay)),
        always_(std::move(always)),
        network_(std::move(settings.name_servers)),
        webhook_(executor, network_, std::move(settings.deny_webhook)),
        load_{.most = raise_descriptor_limit() / 8},
        attachment_(executor, Host{network_, overlay_, counters_, load_, webhook_}, "", settings.sandbox_id,
                    std::move(settings.policy)),
        routes_(policy_routes(
            attachment_, [this](Policy policy) { return change(std::move(policy)); }, settings.most_rules)),
        api_(executor, [this](http::Request& request, http::ResponseWriter& response) {
          return answer(request, response);
        }) {
    network_.badge = badge;
    if (settings.dns_patience) network_.patience = *settings.dns_patience;
  }

  Result<void> open(sys::Outlet outlet) {
    std::vector<Fd> descriptors(1);  // nobody's end is watched
    for (Fd& socket : outlet) descriptors.push_back(std::move(socket));
    return attachment_.open(std::move(descriptors));
  }

  Task<> serve(Fd listener) { co_await api_.serve(std::move(listener)); }
  Task<> tell() { co_await webhook_.run(); }
  // Who speaks TLS for the webhook sends the connections on which it is asked to; see
  // server/webhook_carrier.h.
  Task<> take_carriers(Fd control) {
    io::asio::posix::stream_descriptor waiting(co_await io::asio::this_coro::executor);
    int raw = control.get();
    if (!io::assign(waiting, std::move(control))) co_return;
    while (co_await io::wait_readable(waiting)) {
      char byte = 0;
      std::vector<Fd> given;
      auto size = sys::receive_with_descriptors(raw, {&byte, 1}, given, MSG_DONTWAIT);
      if (!size || *size == 0) break;
      auto carrier = given.size() == 1 ? io::adopt(waiting.get_executor(), std::move(given[0]))
                                       : Result<io::Socket>(fail(Code::corrupt, "no connection"));
      if (carrier) webhook_.take_carrier(std::move(*carrier));
    }
    log::warn("nobody speaks TLS for the webhook any more; denials are not told until a restart");
  }

  Task<> follow_lists() {
    while (true) {
      co_await io::sleep_for(kLookAgain);
      if (!always_.changed()) continue;
      Overlay next = overlay_;
      if (auto read = always_.read(next); !read) {
        log::warn("the operator's lists stay as they were", {{"error", read.error().message}});
        continue;
      }
      overlay_ = std::move(next);
      // Connections that are open are judged anew.
      attachment_.set_policy(attachment_.policy());
      log::info("the operator's lists were read again",
                {{"deny", overlay_.deny.size()}, {"allow", overlay_.allow.size()}});
    }
  }

  Task<> close() {
    co_await api_.close(std::chrono::seconds(1));
    co_await attachment_.close();
  }

 private:
  Result<void> change(Policy policy) {
    if (!settings_.policy_file.empty()) TRY(keep_policy(settings_.policy_file, policy));
    attachment_.set_policy(std::move(policy));
    log::info("egress policy updated",
              {{"id", attachment_.id()}, {"rules", attachment_.policy().rules.size()}});
    return {};
  }

  Task<> send_text(http::ResponseWriter& response, int status, std::string type, std::string text) {
    http::Headers headers;
    headers.add("Content-Type", std::move(type));
    if (status >= 400) headers.add("X-Content-Type-Options", "nosniff");
    (void)co_await response.send(status, std::move(headers), std::move(text));
  }

  Task<> answer(http::Request& request, http::ResponseWriter& response) {
    std::string_view path = request.head.path();
    if (path != "/healthz" && !settings_.token.empty() &&
        !constant_time_equals(request.head.headers.get(kAuthHeader), settings_.token))
      co_return co_await send_text(response, 401, "text/plain; charset=utf-8", "unauthorized\n");
    if (path != "/metrics") co_return co_await routes_(request, response);
    std::string text = to_prometheus({.counters = counters_,
                                      .webhook = webhook_.counts(),
                                      .attached = 1,
                                      .connections = load_.connections});
    co_await send_text(response, 200, "text/plain; version=0.0.4; charset=utf-8", std::move(text));
  }

  SidecarSettings& settings_;
  Overlay overlay_;
  AlwaysFiles always_;
  HostNetwork network_;
  DenyWebhook webhook_;
  Counters counters_;
  Load load_;
  Attachment attachment_;
  http::Handler routes_;
  http::Server api_;
};

Task<> set_on_signal(io::Event& stop) {
  io::asio::signal_set signals(co_await io::asio::this_coro::executor, SIGTERM, SIGINT);
  co_await signals.async_wait(io::asio::as_tuple(io::asio::deferred));
  stop.set();
}

void begin_log(const SidecarSettings& settings) {
  if (settings.log_output == LogOutput::standard_output) ::dup2(STDOUT_FILENO, STDERR_FILENO);
  log::set_level(log::level_from(settings.log_level));
  for (const std::string& warning : settings.warnings) log::warn(warning);
  if (settings.token.empty())
    log::warn(
        "OPENSANDBOX_EGRESS_TOKEN is not set: whoever reaches this sidecar, also from within, may change "
        "the policy");
}

// Of the rights of root one is left: to mark what is ours.
Result<void> drop_rights() {
  if (int error = sys::set_capabilities({CAP_NET_ADMIN}); error < 0)
    return fail_errno("drop capabilities", -error);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return fail_errno("no_new_privs");
  return {};
}

}  // namespace

Result<Gate> close_the_network(const std::vector<std::string>& environment) {
  if (!is_for_sidecar(environment))
    return fail(Code::invalid_argument,
                "none of the variables OPENSANDBOX_EGRESS_* is set. A sidecar closes the network that it is "
                "started in; set OPENSANDBOX_EGRESS_RULES to a policy, {} for one that denies everything");
  Gate gate;
  gate.badge = TRY(sys::random_badge());
  auto outlet = sys::open_pod_outlet(gate.badge);
  if (!outlet && outlet.error().sys_errno == EPERM)
    return fail(Code::permission_denied,
                outlet.error().message +
                    "; a sidecar needs the capability NET_ADMIN in the network that it "
                    "shares with the container");
  gate.outlet = TRY(std::move(outlet));
  return gate;
}

Task<Result<void>> run_sidecar(Gate gate, SidecarSettings settings, Fd carrier) {
  begin_log(settings);
  settings.policy = CO_TRY(initial_policy(settings.policy_file, std::move(settings.policy)));
  Overlay overlay{.https = settings.https, .resolvers = std::move(settings.resolvers)};
  AlwaysFiles always(kRulesDirectory);
  CO_TRY(always.read(overlay));
  CO_TRY(always.check_skipped());
  Fd listener = CO_TRY(listen_for_api(settings));
  CO_TRY(drop_rights());
  auto executor = co_await io::asio::this_coro::executor;
  io::Event stop(executor);
  Sidecar sidecar(executor, gate.badge, settings, std::move(overlay), std::move(always));
  CO_TRY(sidecar.open(std::move(gate.outlet)));
  io::TaskGroup tasks(executor);
  tasks.spawn(set_on_signal(stop));
  tasks.spawn(sidecar.serve(std::move(listener)));
  tasks.spawn(sidecar.tell());
  if (carrier.valid()) tasks.spawn(sidecar.take_carriers(std::move(carrier)));
  tasks.spawn(sidecar.follow_lists());
  log::info("egress policy loaded", {{"id", settings.sandbox_id}, {"port", settings.api_port}});
  co_await stop.wait();
  co_await tasks.close();
  co_await sidecar.close();
  co_return Result<void>();
}

}  // namespace osb::egress
