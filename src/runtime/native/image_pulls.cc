#include "runtime/native/image_pulls.h"

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/log.h"
#include "image/pull_reference.h"
#include "io/descriptor.h"
#include "io/socket.h"

namespace osb::runtime {
namespace {

// While as many keepers as the launcher allows are at work.
constexpr auto kAskAgain = std::chrono::milliseconds(200);

// Whoever joins a pull must be allowed to: the same name, asked for with the same password.
std::string key_of(const std::string& name, const ImageRequest& request) {
  std::string key = name + "\n" + request.platform;
  if (request.auth) key += "\n" + request.auth->username + "\n" + request.auth->password;
  return key;
}

StoredImage stored(const image::Index& index, const image::Image& image) {
  StoredImage out{.id = image.id,
                  .names = {},
                  .bytes = image.bytes,
                  .entries = image.entries,
                  .layers = image.layers.size() + image.over.size(),
                  .since = image.imported,
                  .manifest = image.manifest,
                  .entrypoint = image.config.entrypoint,
                  .cmd = image.config.cmd,
                  .user = image.config.user,
                  .workdir = image.config.workdir,
                  .env = image.config.env,
                  .labels = image.config.labels,
                  .ports = image.config.ports,
                  .owner = image.owner};
  for (const auto& [name, named] : index.names) {
    if (named == image.id) out.names.push_back(name);
  }
  return out;
}

}  // namespace

ImagePulls::ImagePulls(io::Executor executor, Settings settings, calls::LauncherClient& launcher,
                       io::TaskGroup& tasks)
    : executor_(executor),
      settings_(std::move(settings)),
      launcher_(launcher),
      tasks_(tasks),
      index_(settings_.state_dir) {}

bool ImagePulls::wants_pull(const ImageRequest& request, Here here) const {
  using Pull = ImageRequest::Pull;
  // An operator who said never meant the network, not a default for requests.
  if (!settings_.obstacle.empty() || settings_.policy == Pull::never) return false;
  Pull policy = request.pull.value_or(settings_.policy);
  if (policy == Pull::never) return false;
  if (here == Here::no) return true;
  return policy == Pull::always && here == Here::from_registry;
}

Result<PullPtr> ImagePulls::pull(const ImageRequest& request) {
  if (!settings_.obstacle.empty()) return fail(Code::unsupported, settings_.obstacle);
  if (settings_.policy == ImageRequest::Pull::never)
    return fail(Code::unsupported, "this server pulls nothing: registry.pull_policy is \"never\"");
  auto reference = TRY(image::parse_pull_reference(request.reference, settings_.default_registry));
  std::string key = key_of(reference.name(), request);
  if (auto found = running_.find(key); found != running_.end()) return found->second;
  registry::KeeperOrder order{
      .what = registry::KeeperOrder::What::pull, .name = reference.name(), .platform = request.platform};
  if (request.auth) order.login = registry::Login{request.auth->username, request.auth->password};
  auto pull = std::make_shared<PullState>(executor_);
  pull->name = reference.name();
  running_[key] = pull;
  tasks_.spawn(run_pull(std::move(key), std::move(order), pull));
  return pull;
}

PullPtr ImagePulls::pulling(const std::string& asked) const {
  auto reference = image::parse_pull_reference(asked, settings_.default_registry);
  if (!reference) return nullptr;
  for (const auto& [key, pull] : running_) {
    if (pull->name == reference->name()) return pull;
  }
  return nullptr;
}

io::Task<> ImagePulls::run_pull(std::string key, registry::KeeperOrder what, PullPtr pull) {
  log::info("pulling an image", {{"image", pull->name}});
  auto done = co_await order(std::move(what), pull);
  running_.erase(key);
  if (done) {
    pull->outcome = std::move(done->id);
    log::info("image pulled", {{"image", pull->name}});
  } else {
    log::warn("image not pulled", {{"image", pull->name}, {"error", done.error().message}});
    pull->outcome = std::unexpected(std::move(done.error()));
  }
  pull->done.set();
}

io::Task<Result<Fd>> ImagePulls::start_keeper() {
  while (true) {
    auto answer = co_await launcher_.ask(launcher::ImagesRequest{});
    if (answer) co_return std::move(answer->descriptors[0]);
    if (answer.error().code != Code::exhausted) co_return std::unexpected(std::move(answer.error()));
    co_await io::sleep_for(kAskAgain);
  }
}

io::Task<Result<registry::KeeperNews>> ImagePulls::order(registry::KeeperOrder order, PullPtr pull) {
  Fd socket = CO_TRY(co_await start_keeper());
  io::asio::posix::stream_descriptor channel(executor_);
  CO_TRY(io::assign(channel, std::move(socket)));
  CO_TRY(launcher::send_message(channel.native_handle(), registry::encode(order), {}));
  while (true) {
    auto received = launcher::receive_message(channel.native_handle());
    if (!received && received.error().code == Code::exhausted) {
      CO_TRY(co_await io::wait_readable(channel));
      continue;
    }
    if (!received) co_return std::unexpected(std::move(received.error()));
    if (received->bytes.empty())
      co_return fail(Code::internal, "the process that brings images here has ended");
    auto news = CO_TRY(registry::decode_keeper_news(received->bytes));
    if (news.kind == registry::KeeperNews::Kind::done) co_return news;
    if (news.kind == registry::KeeperNews::Kind::failed) co_return std::unexpected(std::move(news.error));
    if (pull) pull->progress = {news.downloaded, news.total, news.unpacked, news.layers};
  }
}

io::Task<Result<void>> ImagePulls::remove(std::string owner, std::string name, bool force) {
  if (!settings_.obstacle.empty()) co_return fail(Code::unsupported, settings_.obstacle);
  auto index = CO_TRY(index_.current());
  if (!index->find(name)) {
    auto reference = image::parse_pull_reference(name, settings_.default_registry);
    if (reference && index->find(reference->name())) name = reference->name();
  }
  const image::Image* found = index->find(name);
  if (found && !found->is_for(owner))
    co_return fail(Code::not_found, "there is no image named " + name.substr(0, 300));
  if (!found) name = CO_TRY(index->find_id(name, owner))->id;
  CO_TRY(co_await order(
      {.what = registry::KeeperOrder::What::remove, .name = std::move(name), .force = force}, nullptr));
  co_return Result<void>();
}

io::Task<Result<RemovedImages>> ImagePulls::prune() {
  if (!settings_.obstacle.empty()) co_return fail(Code::unsupported, settings_.obstacle);
  auto done = CO_TRY(co_await order({.what = registry::KeeperOrder::What::prune}, nullptr));
  co_return RemovedImages{std::move(done.removed), done.freed};
}

Result<void> ImagePulls::check_name(const std::string& name, const std::string& owner) {
  if (!settings_.obstacle.empty()) return fail(Code::unsupported, settings_.obstacle);
  return image::check_taken(*TRY(index_.current()), name, owner);
}

io::Task<Result<std::string>> ImagePulls::commit(ImageCommit what) {
  CO_TRY(check_name(what.name, what.owner));
  image::CommitOrder order{.snapshot = std::move(what.snapshot),
                           .base = settings_.base_of ? settings_.base_of(what.base) : "",
                           .owner = what.owner,
                           .name = what.name,
                           .changes = {.env = std::move(what.env),
                                       .user = std::move(what.user),
                                       .workdir = std::move(what.workdir),
                                       .entrypoint = std::move(what.entrypoint),
                                       .labels = std::move(what.labels),
                                       .cmd = std::move(what.cmd),
                                       .ports = std::move(what.ports)}};
  registry::KeeperOrder asked{.what = registry::KeeperOrder::What::commit,
                              .name = std::move(what.name),
                              .owner = std::move(what.owner),
                              .commit = std::move(order)};
  if (registry::encode(asked).size() > registry::kMaxKeeperMessage)
    co_return fail(Code::invalid_argument, "the configuration of the image is too long");
  auto done = CO_TRY(co_await this->order(std::move(asked), nullptr));
  co_return std::move(done.id);
}

Result<StoredImage> ImagePulls::find(const std::string& owner, const std::string& asked) {
  auto index = TRY(index_.current());
  auto id = settings_.id_of(asked, owner);
  if (id && id->empty()) {
    std::string name = settings_.base_of(asked);
    StoredImage out;
    out.names = {name.empty() ? asked : name};
    return out;
  }
  if (id) {
    if (auto found = index->images.find(*id); found != index->images.end())
      return stored(*index, found->second);
  } else if (id.error().code != Code::not_found) {
    return std::unexpected(std::move(id.error()));
  }
  return stored(*index, *TRY(index->find_id(asked, owner)));
}

Result<std::vector<StoredImage>> ImagePulls::list() {
  auto index = TRY(index_.current());
  std::vector<StoredImage> out;
  for (const auto& [id, image] : index->images) out.push_back(stored(*index, image));
  return out;
}

}  // namespace osb::runtime
