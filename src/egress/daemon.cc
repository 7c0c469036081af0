#include "egress/daemon.h"

#include <sys/resource.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <map>

#include "base/frame.h"
#include "base/ids.h"
#include "base/log.h"
#include "calls/launcher_client.h"
#include "egress/attachment.h"
#include "egress/metrics.h"
#include "egress/policy_files.h"
#include "egress/policy_routes.h"
#include "http/server.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::egress {
namespace {

using io::Task;

constexpr auto kFrameLimit = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kFirstPause(50), kLongestPause(2000);
constexpr auto kForever = std::chrono::hours(24 * 365);
constexpr size_t kMostFrame = 2 * kMostPolicyBytes;

Task<Result<void>> read_exactly(io::Socket& socket, std::span<char> into) {
  while (!into.empty()) {
    size_t n = CO_TRY(co_await io::read_some(socket, into));
    if (n == 0) co_return fail(Code::unavailable, "the server has gone");
    into = into.subspan(n);
  }
  co_return Result<void>();
}

// Not a byte more than the frame: what follows is somebody else's.
Task<Result<std::string>> read_frame(io::Socket& socket) {
  std::string bytes(4, '\0');
  CO_TRY(co_await read_exactly(socket, bytes));
  size_t size = 0;
  for (char c : bytes) size = size << 8 | static_cast<uint8_t>(c);
  if (size > kMostFrame) co_return fail(Code::too_large, "a frame of so many bytes");
  bytes.resize(size);
  CO_TRY(co_await read_exactly(socket, bytes));
  co_return bytes;
}

struct Call {
  std::string attach, api, policy_of;  // a handle in one of them
  KeptPolicy kept;
  bool metrics = false, webhook = false;
};

Result<Call> parse_call(std::string_view text) {
  auto value = TRY(json::parse(text));
  json::Issues issues;
  auto field = json::Field::root(value, issues, "call", json::Reading::exact);
  Call call;
  call.attach = field["attach"].string().value_or("");
  call.api = field["api"].string().value_or("");
  call.policy_of = field["policyOf"].string().value_or("");
  call.metrics = field["metrics"].boolean().value_or(false);
  call.webhook = field["webhook"].boolean().value_or(false);
  if (call.metrics || call.webhook) return call;
  if (!is_uuid(call.attach + call.api + call.policy_of)) return fail(Code::corrupt, "no sandbox is named");
  if (call.attach.empty()) return call;
  call.kept.id = field["id"].string().value_or("");
  const auto* policy = field["policy"].raw();
  if (policy == nullptr) return fail(Code::corrupt, "no policy is given");
  call.kept.policy = TRY(parse_policy(json::print(*policy)));
  return call;
}

std::string answer_text(const Result<std::string>& result) {
  if (result) return *result;
  std::string out = "{\"code\":" + std::to_string(static_cast<int>(result.error().code)) + ",\"error\":";
  json::append_string(out, result.error().message);
  return out + "}";
}

// One sandbox: its attachment and, once somebody asked, its HTTP interface.
struct Served {
  std::unique_ptr<Attachment> attachment;
  std::unique_ptr<http::Server> api;
};

size_t descriptor_limit() {
  struct rlimit files{};
  constexpr size_t kUsual = 1024, kPlenty = 1 << 20;
  if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return kUsual;
  return std::min<size_t>(files.rlim_cur, kPlenty);
}

class Daemon {
 public:
  Daemon(const io::Executor& executor, DaemonOptions& options, io::Event& stop)
      : executor_(executor),
        overlay_(options.overlay),
        network_(options.name_servers),
        webhook_(executor, network_, std::move(options.deny_webhook)),
        files_(std::move(options.directory)),
        launcher_(executor, std::move(options.launcher), [&stop] { stop.set(); }),
        tasks_(executor) {
    tasks_.spawn(launcher_.run());
    tasks_.spawn(webhook_.run());
  }

  // What was attached before this process was started.
  void restore() {
    auto handles = files_.list();
    if (!handles) return log::error("cannot read the policies", {{"error", handles.error().message}});
    for (const std::string& handle : *handles) {
      auto kept = files_.read(handle);
      if (kept)
        tasks_.spawn(attach_again(handle));
      else
        log::error("a sandbox stays without a way out",
                   {{"handle", handle}, {"error", kept.error().message}});
    }
  }

  Task<> serve(Fd listener) {
    io::Acceptor acceptor(executor_, std::move(listener));
    while (true) {
      auto client = co_await acceptor.accept();
      if (client) {
        tasks_.spawn(answer(std::move(*client)));
        continue;
      }
      if (client.error().code == Code::cancelled) co_return;
      co_await io::sleep_for(std::chrono::milliseconds(50));
    }
  }

  // Sandboxes that have something to say, as the launcher notices.
  Task<> hear() {
    while (true) {
      auto caller = co_await launcher_.ask(launcher::CallersRequest{}, kForever);
      auto served = caller ? serve_sandbox(std::move(*caller))
                           : Result<void>(std::unexpected(std::move(caller.error())));
      if (served) continue;
      if (served.error().code != Code::unavailable)
        log::error("a sandbox stays without a way out", {{"error", served.error().message}});
      co_await io::sleep_for(kFirstPause);
    }
  }

  Task<> close() {
    co_await tasks_.close();
    for (auto& [handle, served] : served_) co_await end(served);
  }

 private:
  Task<> end(Served& served) {
    if (served.api) co_await served.api->close(std::chrono::seconds(0));
    co_await served.attachment->close();
  }

  // Until it works or the sandbox is gone: its end is told by nobody but the launcher (watch() begins with an
  // attachment).
  Task<> attach_again(std::string handle) {
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
      auto attached = co_await attach(handle);
      if (attached || attached.error().code == Code::already_exists) co_return;
      if (attached.error().code == Code::not_found) co_return files_.remove(handle);
      if (pause == kFirstPause)
        log::error("a sandbox stays without a way out for now",
                   {{"handle", handle}, {"error", attached.error().message}});
      co_await io::sleep_for(pause);
    }
  }

  Task<Result<void>> attach(std::string handle) {
    if (served_.contains(handle)) co_return fail(Code::already_exists, "the sandbox is attached");
    auto given = CO_TRY(co_await launcher_.ask(launcher::ListenersRequest{{handle}}));
    co_return serve_sandbox(std::move(given));
  }

  // Its policy is the one that is kept, else the default; of a sandbox that was made for a policy there is
  // none.
  Result<KeptPolicy> policy_for(const launcher::ListenersAnswer& sandbox) const {
    auto kept = files_.read(sandbox.id);
    if (!kept && kept.error().sys_errno == ENOENT && sandbox.is_open)
      return KeptPolicy{.id = {}, .policy = Policy{.allow_the_rest = true}};
    return kept;
  }

  Result<void> serve_sandbox(calls::Answered<launcher::ListenersAnswer> given) {
    const std::string& handle = given.body.id;
    KeptPolicy kept = TRY(policy_for(given.body));
    auto attachment =
        std::make_unique<Attachment>(executor_, Host{network_, overlay_, counters_, load_, webhook_}, handle,
                                     std::move(kept.id), std::move(kept.policy));
    TRY(attachment->open(std::move(given.descriptors)));
    served_[handle].attachment = std::move(attachment);
    tasks_.spawn(watch(handle));
    return {};
  }

  Task<> watch(std::string handle) {
    if (!co_await served_.at(handle).attachment->until_gone()) co_return;
    auto gone = served_.extract(handle);
    files_.remove(handle);
    co_await io::asio::this_coro::throw_if_cancelled(false);
    co_await end(gone.mapped());
  }

  Result<void> change(Attachment& attachment, Policy policy) {
    KeptPolicy kept{attachment.id(), policy};
    // On the disk first: what is in force must be there after a crash, and what cannot be kept is refused.
    TRY(files_.write(attachment.handle(), kept));
    attachment.set_policy(std::move(policy));
    log::info("egress policy updated",
              {{"id", attachment.id()}, {"rules", attachment.policy().rules.size()}});
    return {};
  }

  Task<Result<void>> take_over(std::string handle, KeptPolicy kept) {
    CO_TRY(files_.write(handle, kept));
    auto attached = co_await attach(handle);
    if (!attached && attached.error().code != Code::already_exists) files_.remove(handle);
    co_return attached;
  }

  // Of a sandbox without a way out there is none. What cannot be read is not the same as that.
  Result<std::string> kept_policy(const std::string& handle) {
    auto kept = files_.read(handle);
    if (kept) return "{\"policy\":" + to_json(kept->policy) + "}";
    if (kept.error().sys_errno == ENOENT) return "{}";
    return std::unexpected(std::move(kept.error()));
  }

  std::string metrics() const {
    std::string out = "{\"metrics\":";
    json::append_string(out, to_prometheus({.counters = counters_,
                                            .webhook = webhook_.counts(),
                                            .attached = served_.size(),
                                            .connections = load_.connections}));
    return out + "}";
  }

  Task<> answer(io::Socket client) {
    auto frame = co_await io::with_deadline(kFrameLimit, "the server", read_frame(client));
    if (!frame) co_return;
    auto call = parse_call(*frame);
    Result<std::string> result = "{}";
    if (!call) {
      result = std::unexpected(call.error());
    } else if (call->metrics) {
      result = metrics();
    } else if (call->webhook) {
      co_return webhook_.take_carrier(std::move(client));
    } else if (!call->attach.empty()) {
      auto attached = co_await take_over(call->attach, std::move(call->kept));
      if (!attached) result = std::unexpected(attached.error());
    } else if (!call->policy_of.empty()) {
      result = kept_policy(call->policy_of);
    } else {
      // One that was never heard of is served from now on: its policy can be asked for and changed.
      (void)co_await attach(call->api);
      // Who waits for HTTP sees the end of the connection.
      if (auto found = served_.find(call->api); found != served_.end())
        adopt(found->second, std::move(client));
      co_return;
    }
    (void)co_await io::write_all(client, encode_frame(answer_text(result)));
  }

  void adopt(Served& served, io::Socket client) {
    if (!served.api) {
      Attachment& attachment = *served.attachment;
      auto change = [this, &attachment](Policy policy) {
        return this->change(attachment, std::move(policy));
      };
      served.api = std::make_unique<http::Server>(executor_, policy_routes(attachment, std::move(change)));
    }
    served.api->adopt(std::move(client));
  }

  io::Executor executor_;
  Overlay overlay_;
  HostNetwork network_;
  DenyWebhook webhook_;
  Counters counters_;
  Load load_{.most = descriptor_limit() / 8};  // two sockets and two pipes each, and some for everything else
  PolicyFiles files_;
  calls::LauncherClient launcher_;
  std::map<std::string, Served> served_;
  io::TaskGroup tasks_;
};

void raise_descriptor_limit() {
  struct rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

Task<> set_on_signal(io::Event& stop) {
  io::asio::signal_set signals(co_await io::asio::this_coro::executor, SIGTERM, SIGINT);
  co_await signals.async_wait(io::asio::as_tuple(io::asio::deferred));
  stop.set();
}

}  // namespace

Task<Result<void>> run(DaemonOptions options) {
  raise_descriptor_limit();
  auto executor = co_await io::asio::this_coro::executor;
  io::Event stop(executor);
  Daemon daemon(executor, options, stop);
  daemon.restore();
  io::TaskGroup tasks(executor);
  tasks.spawn(set_on_signal(stop));
  tasks.spawn(daemon.serve(std::move(options.listener)));
  tasks.spawn(daemon.hear());
  co_await stop.wait();
  co_await tasks.close();
  co_await daemon.close();
  co_return Result<void>();
}

}  // namespace osb::egress
