#include "server/serve.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "http/server.h"
#include "server/clock_changes.h"
#include "server/gate.h"
#include "server/pool_templates.h"
#include "server/renew_intents.h"
#include "server/routes.h"
#include "store/open_repository.h"

namespace osb::server {
namespace {

Task<> sweep_connections(ConnectionPool& connections) {
  while (true) {
    co_await io::sleep_for(std::chrono::seconds(15));
    connections.sweep();
  }
}

// Writes what could not be written, and ends this process when only a new one can write at all.
Task<> tend_store(store::Repository& store, io::Event& stop, bool& reopen) {
  while (true) {
    co_await io::sleep_for(co_await store.tend());
    if (!store.wants_reopening()) continue;
    log::info("the state database is opened anew, by the next process");
    reopen = true;
    stop.set();
    co_return;
  }
}

// Expiries are times of the wall clock, and timers are not.
Task<> tell_of_clock(Lifecycle& lifecycle) {
  auto changes = ClockChanges::open(co_await io::asio::this_coro::executor);
  Result<void> set = changes ? Result<void>() : std::unexpected(changes.error());
  while (set && (set = co_await changes->next())) {
    log::info("the wall clock was set");
    lifecycle.clock_was_set();
  }
  log::warn("a clock that is set is noticed late", {{"error", set.error().message}});
}

// The key of the configuration is the default owner's.
Keys keys_of(const Config& config, std::vector<Key> further) {
  further.push_back({.owner = std::string(sandbox::kDefaultOwner), .key = config.server.api_key});
  return Keys(std::move(further));
}

Task<Result<void>> ask_runtime(runtime::Runtime& runtime) {
  co_return in_context("runtime " + std::string(runtime.name()), co_await runtime.health());
}

HealthCheck check_of(runtime::Runtime& runtime, runtime::Runtimes& runtimes) {
  using Weight = HealthCheck::Weight;
  return {.name = "runtime",
          .ask = [&runtime] { return ask_runtime(runtime); },
          .remedy = "see the log of the service; osb doctor says what this host lacks",
          .weight = &runtime == &runtimes.standard() ? Weight::vital : Weight::partial};
}

RenewIntents::Settings intents_of(const Config& config) {
  const RenewRedisSection& redis = config.renew.redis;
  return {.address = redis.address, .queue_key = redis.queue_key, .consumers = redis.consumer_concurrency};
}

Task<Result<void>> ask_intents(const RenewIntents& intents) { co_return intents.health(); }

// See docs/configuration.md: what fits is compared with this.
void keep_ready(Pools& pools, const Config& config, runtime::Runtimes& runtimes) {
  const runtime::Ability& can = runtimes.standard().capabilities().pools;
  if (!can) return log::warn("sandbox.pool_size has no effect", {{"reason", can.why}});
  std::string text = own_template(config.sandbox.pool_image, config.sandbox.pool_limits);
  auto shape = read_template(text, config, runtimes, Clock::system().now());
  if (!shape) return log::error("sandbox.pool_size has no effect", {{"reason", shape.error().message}});
  shape->runtime = runtimes.standard().name();
  const int64_t size = *config.sandbox.pool_size;
  // Members of another shape are those of another pool.
  sandbox::Pool pool{.id = "own " + text, .name = "of this server", .shape = text};
  pool.capacity = {.buffer_min = size, .buffer_max = size, .pool_min = 0, .pool_max = size};
  pools.keep_ready(std::move(pool), std::move(*shape));
}

http::Router make_router(Service& service) {
  http::Router router;
  add_sandbox_routes(router, service);
  add_snapshot_routes(router, service);
  add_pool_routes(router, service);
  add_volume_routes(router, service);
  add_endpoint_routes(router, service);
  add_diagnostics_routes(router, service);
  add_image_routes(router, service);
  add_push_routes(router, service);
  add_commit_routes(router, service);
  add_service_routes(router, service);
  add_follow_routes(router, service);
  add_alias_routes(router, service);
  add_egress_routes(router, service);
  add_proxy_routes(router, service);
  return router;
}

// A proxied request has a descriptor on both sides. Without one left, nobody could be let in to be refused.
size_t room_for_connections() {
  constexpr rlim_t kOfOurOwn = 512, kLeast = 64;
  struct rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return kLeast;
  return static_cast<size_t>(std::max(kLeast, (files.rlim_cur - std::min(files.rlim_cur, kOfOurOwn)) / 2));
}

http::ServerLimits limits_of(const Config& config) {
  http::ServerLimits limits;
  limits.idle_timeout = std::chrono::seconds(config.server.timeout_keep_alive);
  limits.max_connections =
      std::min(static_cast<size_t>(config.server.max_connections), room_for_connections());
  return limits;
}

Task<> serve_until_stopped(const Config& config, Gate& gate, ChangeFeed& changes, Fd listener,
                           io::Event& stop) {
  auto executor = co_await io::asio::this_coro::executor;
  http::Server server(
      executor,
      [&gate](Request& request, ResponseWriter& response) { return gate.handle(request, response); },
      limits_of(config));
  io::TaskGroup accepting(executor);
  accepting.spawn(server.serve(std::move(listener)));
  co_await stop.wait();
  log::info("stopping");
  changes.close();
  co_await server.close(std::chrono::seconds(config.server.timeout_graceful_shutdown));
  co_await accepting.close();
}

}  // namespace

io::Task<Result<void>> run(Serve options) {
  // A caller that cancels instead of setting `stop` still gets the groups below closed in order.
  co_await io::asio::this_coro::throw_if_cancelled(false);
  auto executor = co_await io::asio::this_coro::executor;
  const Config& config = options.config;
  // One directory has many spellings.
  std::error_code unknown;
  std::string state_dir = std::filesystem::weakly_canonical(config.native.state_dir, unknown);
  store::DatabaseOwner owner{.identity = options.identity,
                             .state_dir = unknown ? config.native.state_dir : state_dir};
  auto store = CO_TRY(store::open_repository(config.database_path(), owner));
  ConnectionPool connections;
  SandboxTraffic traffic(config.proxy.max_in_flight_per_sandbox);
  CreateQueue creates(executor);
  CreateOnce once(executor, *store, Clock::system());
  ChangeFeed changes(executor);
  store->on_change([&changes](const std::string& id) { changes.changed(id); });
  runtime::Runtimes& runtimes = *options.runtimes;
  Lifecycle lifecycle(executor, *store, runtimes);
  if (config.sandbox.max_lifetime) lifecycle.live_at_most(std::chrono::seconds(*config.sandbox.max_lifetime));
  lifecycle.on_end([&connections](const std::string& id) { connections.drop(id); });
  co_await lifecycle.recover();
  lifecycle.start();
  AccessRenewal renewal(executor, lifecycle, std::chrono::seconds(config.renew.min_interval_seconds));
  RenewIntents intents(executor, *store, renewal, intents_of(config));
  Snapshots snapshots(executor, *store, runtimes, lifecycle);
  co_await snapshots.recover();
  Pools pools(executor, {.store = *store,
                         .runtimes = runtimes,
                         .lifecycle = lifecycle,
                         .snapshots = snapshots,
                         .creates = creates});
  if (config.sandbox.pool_size.value_or(0) > 0) keep_ready(pools, config, runtimes);
  co_await pools.recover([&config, &runtimes](const std::string& text) {
    return read_template(text, config, runtimes, Clock::system().now());
  });
  const Keys keys = keys_of(config, std::move(options.further_keys));
  io::TaskGroup pumps(executor);
  Service service{.config = config,
                  .keys = keys,
                  .tokens = options.tokens,
                  .store = *store,
                  .runtimes = runtimes,
                  .lifecycle = lifecycle,
                  .snapshots = snapshots,
                  .pools = pools,
                  .connections = connections,
                  .traffic = traffic,
                  .creates = creates,
                  .once = once,
                  .changes = changes,
                  .renewal = config.renew.enabled ? &renewal : nullptr,
                  .pumps = pumps,
                  .clock = Clock::system(),
                  .isolation = options.isolation};
  // Recovery has named every runtime that a row needs.
  for (runtime::Runtime* runtime : runtimes.all()) service.health.add(check_of(*runtime, runtimes));
  service.health.add({.name = "store",
                      .ask = [&store] { return store->check_writing(); },
                      .remedy =
                          "make room on the disk of the state directory, or repair it; sandboxes that are "
                          "deleted or expire end all the same"});
  if (config.renew.enabled && config.renew.redis.enabled) {
    intents.start();
    service.health.add({.name = "redis",
                        .ask = [&intents] { return ask_intents(intents); },
                        .remedy = "start Redis, or correct renew_intent.redis.dsn; uses of the proxy renew "
                                  "sandboxes all the same",
                        .weight = HealthCheck::Weight::partial});
  }
  http::Router router = make_router(service);
  Gate gate(config, keys, options.tokens, router);
  if (config.runtime.fallback_native) {
    log::warn("the native runtime serves instead of the configured one: runtime.fallback",
              {{"configured", to_string(config.runtime.type)}});
  }
  if (config.has_key() && config.proxy.open) {
    log::warn("proxy.open: whoever knows the id of a sandbox runs commands in it, without the key",
              {{"remedy", "remove [proxy] open, so that ports need the token of their endpoint"}});
  }
  io::TaskGroup sweeping(executor);
  sweeping.spawn(sweep_connections(connections));
  sweeping.spawn(tell_of_clock(lifecycle));
  bool reopen = false;
  sweeping.spawn(tend_store(*store, *options.stop, reopen));
  log::info("serving",
            {{"host", config.server.host}, {"port", config.server.port}, {"runtime", runtimes.names()}});
  if (options.on_ready) options.on_ready();
  co_await serve_until_stopped(config, gate, changes, std::move(options.listener), *options.stop);
  co_await sweeping.close();
  co_await pumps.close();
  co_await intents.close();
  co_await renewal.close();
  co_await pools.close();
  co_await snapshots.close();
  co_await lifecycle.close();
  log::info("stopped, sandboxes keep running");
  if (reopen) co_return fail(Code::unavailable, "started again to write the state database");
  co_return Result<void>();
}

bool is_permanent(const Error& error) {
  switch (error.code) {
    case Code::already_exists:    // another service's
    case Code::corrupt:           // no database
    case Code::unsupported:       // a newer schema
    case Code::invalid_argument:  // the configuration
      return true;
    case Code::permission_denied:
      return error.sys_errno != EROFS;  // a disk may be repaired; rights have to be changed
    default:
      return false;
  }
}

}  // namespace osb::server
