#include "registry/pull.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/machine.h"
#include "image/budget.h"
#include "image/builder.h"
#include "registry/fetcher_process.h"

namespace osb::registry {
namespace {

using Clock = std::chrono::steady_clock;
using Kind = FetchEvent::Kind;

// A registry that says within this time neither yes nor no is away.
constexpr auto kPlanLimit = std::chrono::seconds(90);

// Where the API of a registry is, by the name that people use.
std::string api_host(const std::string& registry) {
  return registry == image::kDockerHub ? "registry-1.docker.io" : registry;
}

Result<Url> base_of(const std::string& registry, const HttpSettings& http) {
  std::string host = api_host(registry);
  bool plain = is_loopback(host.substr(0, host.find(':'))) || http.plain_hosts.contains(host);
  return parse_url((plain ? "http://" : "https://") + host);
}

// This host's, not the image's: whoever hears of it cannot do anything about the image.
std::unexpected<Error> own_fault(Error error) {
  error.code = Code::internal;
  return std::unexpected(std::move(error));
}

bool is_about_the_image(Code code) {
  return code == Code::corrupt || code == Code::too_large || code == Code::unsupported ||
         code == Code::invalid_argument;
}

}  // namespace

void Pull::tell() {
  if (watch_.progress) watch_.progress(news_);
}

Result<FetchOrder> Pull::fetch_order() const {
  std::map<std::string, Login> logins;
  if (!settings_.auth_file.empty()) {
    auto text = read_file(settings_.auth_file);
    if (!text) return own_fault(std::move(text.error()).in("registry.auth_file"));
    auto parsed = parse_login_file(*text);
    if (!parsed) return own_fault(std::move(parsed.error()).in("registry.auth_file " + settings_.auth_file));
    logins = std::move(*parsed);
  }
  auto login_for = [&](const std::string& host) -> std::optional<Login> {
    auto found = logins.find(host);
    return found == logins.end() ? std::nullopt : std::optional(found->second);
  };
  FetchOrder order{
      .sources = {},
      .repository = reference_.repository,
      .version = reference_.version(),
      .platform = order_.platform.empty() ? "linux/" + std::string(host_architecture()) : order_.platform,
      .http = settings_.http};
  for (const std::string& file : settings_.ca_files) {
    auto text = read_file(file);
    if (!text) return own_fault(std::move(text.error()).in("registry.ca_files"));
    order.http.authorities.push_back(std::move(*text));
  }
  if (auto mirror = settings_.mirrors.find(reference_.registry); mirror != settings_.mirrors.end()) {
    // Whose password the request has is the registry's; a mirror has its own, or none.
    Url base = TRY(parse_url(mirror->second));
    auto login = login_for(base.authority());
    order.sources.push_back({.base = std::move(base), .login = std::move(login)});
  }
  order.sources.push_back({.base = TRY(base_of(reference_.registry, settings_.http)),
                           .login = order_.login ? order_.login : login_for(reference_.registry)});
  return order;
}

Result<std::optional<FetchEvent>> Pull::hear(FrameSocket& fetcher, int socket, Clock::time_point until) {
  auto frame = TRY(fetcher.next());
  if (!frame) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return fail(Code::timeout, "the registry does not answer");
    pollfd fds[2] = {{socket, POLLIN, 0}, {watch_.cancel_fd, POLLIN, 0}};
    if (::poll(fds, 2, static_cast<int>(std::min<int64_t>(left, 60'000))) < 0 && errno != EINTR)
      return fail_errno("poll");
    if (fds[1].revents) return fail(Code::cancelled, "nobody waits for it any more");
    if (!fds[0].revents) return std::optional<FetchEvent>();
    auto some = fetcher.receive_some();
    if (!some) return fail(Code::internal, "the process that downloads has ended");
    frame = std::move(*some);
  }
  if (!frame) return std::optional<FetchEvent>();
  auto event = decode_fetch_event(*frame);
  if (!event) return fail(Code::internal, "the process that downloads spoke nonsense");
  if (event->kind == Kind::failed) return std::unexpected(std::move(event->error));
  return std::optional(std::move(*event));
}

Result<Resolved> Pull::hear_plan(FrameSocket& fetcher, int socket) {
  auto until = Clock::now() + kPlanLimit;
  while (true) {
    auto event = TRY(hear(fetcher, socket, until));
    if (event && event->kind == Kind::plan) return std::move(event->plan);
  }
}

// Without a limit of its own: a fetcher gives up by itself when nothing comes any more.
Result<void> Pull::hear_end(FrameSocket& fetcher, int socket) {
  while (true) {
    auto event = TRY(hear(fetcher, socket, Clock::now() + std::chrono::hours(1)));
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
      built.error().code != Code::wrong_state)
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
  auto order = TRY(fetch_order());
  auto process = FetcherProcess::start(executable->get(), blobs->fd());
  if (!process) return own_fault(std::move(process.error()));
  FrameSocket fetcher(process->socket());
  TRY(fetcher.send(encode(order)));
  Resolved plan = TRY(hear_plan(fetcher, process->socket()));
  if (auto id = is_here(plan)) return *id;

  std::vector<std::string> needed;
  bool goes_on = false;  // with what an earlier pull left
  for (const auto& layer : plan.layers) {
    if (has_layer(layer.diff_id) || std::ranges::find(needed, layer.digest) != needed.end()) continue;
    needed.push_back(layer.digest);
    news_.total += layer.size;
    ++news_.layers;
    goes_on = goes_on || blobs->size_of(layer.digest) > 0;
  }
  tell();
  TRY(fetcher.send(encode_needs(needed)));
  auto fetched = hear_end(fetcher, process->socket());
  if (!fetched) {
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
  if (id) return id;
  // What an earlier pull left may have lost its end in a crash; a layer that was here may have been
  // collected.
  worth_another = (goes_on && id.error().code == Code::corrupt) || id.error().code == Code::wrong_state;
  return id;
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
