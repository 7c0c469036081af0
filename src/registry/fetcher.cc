#include "registry/fetcher.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "registry/downloads.h"
#include "registry/fetch_messages.h"
#include "registry/pusher.h"

namespace osb::registry {
namespace {

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kPause(300);

Result<Resolved> resolve(RepositoryClient& client, const FetchOrder& order) {
  auto pause = kPause;
  for (int attempt = 1;; ++attempt) {
    auto resolved = client.resolve(order.version, order.platform);
    if (resolved || !may_be_tried_again(resolved.error()) || attempt == kAttempts) return resolved;
    // Silence takes its time anyway; one more attempt is enough.
    if (resolved.error().code == Code::timeout) attempt = kAttempts - 1;
    std::this_thread::sleep_for(pause);
    pause *= 3;
  }
}

struct Found {
  RepositoryClient client;
  Resolved resolved;
};

// A mirror that is away or does not have it stands back for the next.
Result<Found> find(HttpClient& http, const FetchOrder& order) {
  Result<Resolved> resolved = fail(Code::invalid_argument, "no registry to ask");
  for (const FetchSource& source : order.sources) {
    RepositoryClient client(http, source, order.repository);
    resolved = resolve(client, order);
    if (resolved) return Found{std::move(client), std::move(*resolved)};
  }
  return std::unexpected(std::move(resolved.error()));
}

Result<void> fetch(FrameSocket& keeper, int directory) {
  FetchOrder order = TRY(decode_fetch_order(TRY(keeper.receive())));
  HttpClient http(order.http);
  if (order.push) return push(keeper, http, order);
  Found found = TRY(find(http, order));
  TRY(keeper.send(encode(FetchEvent{.kind = FetchEvent::Kind::plan, .plan = found.resolved})));
  auto needed = TRY(decode_needs(TRY(keeper.receive())));
  std::vector<Resolved::Layer> layers;
  for (const Resolved::Layer& layer : found.resolved.layers) {
    bool known = std::ranges::any_of(layers, [&](const auto& other) { return other.digest == layer.digest; });
    if (!known && std::ranges::find(needed, layer.digest) != needed.end()) layers.push_back(layer);
  }
  return download_layers(found.client, layers, directory, [&](uint64_t bytes) {
    (void)keeper.send(encode(FetchEvent{.kind = FetchEvent::Kind::progress, .bytes = bytes}));
  });
}

}  // namespace

int run_fetcher(int socket, int directory) {
  log::set_role("fetcher");
  ::signal(SIGPIPE, SIG_IGN);
  FrameSocket keeper(socket);
  auto done = fetch(keeper, directory);
  FetchEvent end;
  if (!done) end = {.kind = FetchEvent::Kind::failed, .error = std::move(done.error())};
  return keeper.send(encode(end)) ? 0 : 1;
}

}  // namespace osb::registry
