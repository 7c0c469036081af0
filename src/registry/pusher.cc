#include "registry/pusher.h"

#include <set>

#include "registry/at_once.h"
#include "registry/fetcher.h"
#include "registry/uploader.h"

namespace osb::registry {
namespace {

// Which form of a layer is there, in the repository itself or in another one that lends it; -1 for none.
Result<int> find(Uploader& uploader, const PushWish& wish, const PushWish::Layer& layer) {
  for (size_t i = 0; i < layer.forms.size(); ++i) {
    if (TRY(uploader.has(layer.forms[i]))) return static_cast<int>(i);
  }
  for (size_t i = 0; i < layer.forms.size(); ++i) {
    for (const std::string& other : wish.others) {
      if (TRY(uploader.mount(layer.forms[i], other))) return static_cast<int>(i);
    }
  }
  return -1;
}

Result<void> upload_layers(RepositoryClient& client, const PushContent& content, const Told& told) {
  std::vector<Job> jobs;
  std::set<std::string> known;
  for (const PushContent::Layer& layer : content.layers) {
    if (layer.file < 0 || !known.insert(layer.blob.digest).second) continue;
    auto work = [&client, &layer](const Told& each) -> Result<void> {
      Uploader uploader(client);
      if (!TRY(uploader.has(layer.blob)))
        return uploader.upload(layer.blob, kFetcherFirstFileFd + layer.file, each);
      each(layer.blob.size);
      return {};
    };
    jobs.push_back({.work = std::move(work), .size = layer.blob.size});
  }
  return run_at_once(jobs, told);
}

}  // namespace

Result<void> push(FrameSocket& keeper, HttpClient& http, const FetchOrder& order) {
  if (order.sources.size() != 1) return fail(Code::invalid_argument, "a push goes to one registry");
  RepositoryClient client(http, order.sources.front(), order.repository, RepositoryClient::Rights::push);
  Uploader uploader(client);
  FetchEvent found{.kind = FetchEvent::Kind::found};
  auto look = [&]() -> Result<void> {
    found.forms.clear();
    // Also when nothing is known yet: whoever may not write here hears of it before anything is packed.
    TRY(uploader.probe());
    for (const PushWish::Layer& layer : order.push->layers)
      found.forms.push_back(TRY(find(uploader, *order.push, layer)));
    return {};
  };
  // Few attempts: somebody waits to hear that there is no such registry.
  TRY(try_again(look, [] { return uint64_t{0}; }, 3));
  TRY(keeper.send(encode(found)));
  PushContent content = TRY(decode_push_content(TRY(keeper.receive())));
  TRY(upload_layers(client, content, [&](uint64_t bytes) {
    (void)keeper.send(encode(FetchEvent{.kind = FetchEvent::Kind::progress, .bytes = bytes}));
  }));
  auto name = [&]() -> Result<void> {
    TRY(uploader.upload(content.config));
    return uploader.put_manifest(order.version, content.manifest_type, content.manifest);
  };
  return try_again(name, [] { return uint64_t{0}; });
}

}  // namespace osb::registry
