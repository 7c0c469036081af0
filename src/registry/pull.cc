#include "registry/pull.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/log.h"
#include "image/budget.h"
#include "image/builder.h"
#include "registry/fetcher_process.h"
#include "registry/room.h"

namespace osb::registry {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = FetchEvent::Kind;

// A registry that says within this time neither yes nor no is away.
constexpr auto kPlanLimit = std::chrono::seconds(90);

bool is_about_the_image(Code code) {
  return code == Code::corrupt || code == Code::too_large || code == Code::unsupported ||
         code == Code::invalid_argument;
}

}  // namespace

void Pull::tell() {
  if (watch_.progress) watch_.progress(news_);
}

Result<Resolved> Pull::hear_plan(FetchTalk& fetcher) {
  auto until = Clock::now() + kPlanLimit;
  while (true) {
    auto event = TRY(fetcher.hear(until));
    if (event && event->kind == Kind::plan) return std::move(event->plan);
  }
}

// Without a limit of its own: a fetcher gives up by itself when nothing comes any more.
Result<void> Pull::hear_end(FetchTalk& fetcher) {
  while (true) {
    auto event = TRY(fetcher.hear(Clock::now() + std::chrono::hours(1)));
    if (!event) continue;
    if (event->kind == Kind::done) return {};
    news_.downloaded = std::min(event->bytes, news_.total);
    tell();
  }
}

bool Pull::has_layer(const std::string& diff_id) const {
  struct stat info{};
  return ::lstat((settings_.state_dir + "/images/store/layers/" + diff_id).c_str(), &info) == 0;
}

// The same manifest under this name, with everything that it needs.
std::optional<std::string> Pull::is_here(const Resolved& plan) const {
  auto index = image::load_index(settings_.state_dir);
  const image::Image* known = index ? index->find(reference_.name()) : nullptr;
  if (!known || known->manifest != plan.manifest_digest) return std::nullopt;
  for (const std::string& layer : known->layers) {
    if (!has_layer(layer)) return std::nullopt;
  }
  return known->id;
}

Result<std::string> Pull::unpack(const Resolved& plan, const BlobDirectory& blobs) {
  image::Store::Options options;
  options.state_dir = settings_.state_dir;
  options.service_gid = settings_.service_gid;
  auto store = image::Store::open(std::move(options));
  if (!store) return own_fault(std::move(store.error()));
  auto build = [&]() -> Result<image::Imported> {
    image::ImageBuilder builder(*store, {});
    builder.set_config(plan.config);
    builder.set_manifest(plan.manifest_digest);
    for (size_t i = 0; i < plan.layers.size(); ++i) {
      const auto& layer = plan.layers[i];
      Fd file;
      if (!store->has_layer(layer.diff_id)) {
        auto opened = blobs.open_blob(layer.digest);
        // It was here a moment ago: another writer has collected it.
        if (!opened) return fail(Code::wrong_state, "layer sha256:" + layer.digest + " is gone again");
        file = std::move(*opened);
        ++news_.unpacked;
      }
      image::LayerSource source{.bytes = {.fd = file.get(), .offset = 0, .size = layer.size},
                                .diff_id = layer.diff_id,
                                .blob_digest = layer.digest};
      image::WorkerWatch watch{.progress = {}, .cancel_fd = watch_.cancel_fd};
      TRY(in_context("layer " + std::to_string(i + 1) + " of " + std::to_string(plan.layers.size()),
                     builder.layer(source, true, watch)));
      tell();
    }
    return builder.finish({reference_.name()});
  };
  auto built = build();
  // Also after a failure: layers that came before it, and what a moved name leaves unused.
  auto collected = store->collect();
  if (!built && !is_about_the_image(built.error().code) && built.error().code != Code::cancelled &&
      built.error().code != Code::wrong_state && built.error().code != Code::exhausted)
    return own_fault(std::move(built.error()));
  if (!built) return std::unexpected(std::move(built.error()));
  if (!collected) return own_fault(std::move(collected.error()));
  if (settings_.disk_budget > 0) {
    if (auto shrunk = image::shrink_to(*store, settings_.disk_budget, built->id); !shrunk)
      return own_fault(std::move(shrunk.error()));
  }
  store->settle_in_background();
  return built->id;
}

Result<std::string> Pull::attempt(bool& worth_another) {
  auto blobs = BlobDirectory::open(settings_.state_dir);
  if (!blobs) return own_fault(std::move(blobs.error()));
  blobs->sweep(BlobDirectory::Which::forgotten);
  auto executable = open_at(AT_FDCWD, "/proc/self/exe", O_RDONLY);
  if (!executable) return own_fault(std::move(executable.error()));
  auto order = TRY(fetch_order(settings_, reference_, {.login = order_.login, .mirrors = asks_mirrors_}));
  if (!order_.platform.empty()) order.platform = order_.platform;
  auto process = FetcherProcess::start(executable->get(), blobs->fd());
  if (!process) return own_fault(std::move(process.error()));
  FetchTalk fetcher(process->socket(), watch_.cancel_fd);
  TRY(fetcher.send(encode(order)));
  Resolved plan = TRY(hear_plan(fetcher));
  if (auto id = is_here(plan)) return *id;

  std::vector<std::string> needed;
  uint64_t to_come = 0;
  bool goes_on = false;  // with what an earlier pull left
  for (const auto& layer : plan.layers) {
    if (has_layer(layer.diff_id) || std::ranges::find(needed, layer.digest) != needed.end()) continue;
    needed.push_back(layer.digest);
    news_.total += layer.size;
    ++news_.layers;
    uint64_t here = static_cast<uint64_t>(std::max<int64_t>(0, blobs->size_of(layer.digest)));
    uint64_t rest = layer.size - std::min(layer.size, here);
    to_come = rest > UINT64_MAX - to_come ? UINT64_MAX : to_come + rest;
    goes_on = goes_on || here > 0;
  }
  // What does not fit is not kept for the next one, either: it would take the room of everything else.
  auto drop = [&](Error error) -> Result<std::string> {
    for (const std::string& digest : needed) blobs->remove_idle(digest);
    return std::unexpected(std::move(error));
  };
  auto room = check_room(settings_, to_come);
  if (!room && room.error().code != Code::exhausted) return own_fault(std::move(room.error()));
  if (!room) return drop(std::move(room.error()));
  tell();
  TRY(fetcher.send(encode_needs(needed)));
  auto fetched = hear_end(fetcher);
  if (!fetched) {
    if (fetched.error().code == Code::exhausted) return drop(std::move(fetched.error()));
    // What the network broke off is where the next pull goes on.
    if (is_about_the_image(fetched.error().code)) {
      for (const std::string& digest : needed) blobs->remove(digest);
    }
    return std::unexpected(std::move(fetched.error()));
  }
  auto id = unpack(plan, *blobs);
  if (id || id.error().code != Code::cancelled) {
    for (const std::string& digest : needed) blobs->remove(digest);
  }
  // What an earlier pull left may have lost its end in a crash; a layer that was here may have been
  // collected.
  if (!id) {
    worth_another = (goes_on && id.error().code == Code::corrupt) || id.error().code == Code::wrong_state ||
                    (order.sources.size() > 1 && leave_mirrors_out(id.error()));
  }
  return id;
}

// Bytes of the right size that are not the layer are noticed by who unpacks them, and nobody knows any more
// who gave them. The registry itself may have the right ones.
bool Pull::leave_mirrors_out(const Error& error) {
  if (!is_about_the_image(error.code)) return false;
  log::warn("the image is asked for again without the mirror",
            {{"image", reference_.name()}, {"error", error.message}});
  asks_mirrors_ = false;
  return true;
}

Result<std::string> Pull::run() {
  reference_ = TRY(image::parse_pull_reference(order_.name, settings_.default_registry));
  bool worth_another = false;
  auto pulled = attempt(worth_another);
  if (!pulled && worth_another) {
    news_ = {};
    pulled = attempt(worth_another);
  }
  if (!pulled && pulled.error().code == Code::wrong_state) return own_fault(std::move(pulled.error()));
  return pulled;
}

}  // namespace osb::registry
