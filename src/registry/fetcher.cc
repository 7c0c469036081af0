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

// A mirror that is away or does not have it stands back for the next. Whoever has it and all behind are who
// may be asked for layers.
Result<Resolved> find(HttpClient& http, const FetchOrder& order, std::vector<RepositoryClient>& clients) {
  Result<Resolved> resolved = fail(Code::invalid_argument, "no registry to ask");
  for (const FetchSource& source : order.sources) {
    RepositoryClient client(http, source, order.repository);
    if (!resolved) resolved = resolve(client, order);
    if (resolved) clients.push_back(std::move(client));
  }
  return resolved;
}

Result<void> fetch(FrameSocket& keeper, int directory) {
  FetchOrder order = TRY(decode_fetch_order(TRY(keeper.receive())));
  HttpClient http(order.http);
  if (order.push) return push(keeper, http, order);
  std::vector<RepositoryClient> clients;
  Resolved found = TRY(find(http, order, clients));
  TRY(keeper.send(encode(FetchEvent{.kind = FetchEvent::Kind::plan, .plan = found})));
  auto needed = TRY(decode_needs(TRY(keeper.receive())));
  std::vector<Resolved::Layer> layers;
  for (const Resolved::Layer& layer : found.layers) {
    bool known = std::ranges::any_of(layers, [&](const auto& other) { return other.digest == layer.digest; });
    if (!known && std::ranges::find(needed, layer.digest) != needed.end()) layers.push_back(layer);
  }
  return download_layers(clients, layers, directory, [&](uint64_t bytes) {
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
