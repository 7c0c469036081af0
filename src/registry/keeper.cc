#include "registry/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/log.h"
#include "image/budget.h"
#include "image/libraries.h"
#include "image/pull_reference.h"
#include "registry/pull.h"
#include "registry/push.h"

namespace osb::registry {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kToldEvery = std::chrono::milliseconds(100);
constexpr uint64_t kSteps = 50;

class Keeper {
 public:
  Keeper(int channel, KeeperSettings settings) : channel_(channel), settings_(std::move(settings)) {}

  Result<KeeperNews> serve() {
    KeeperOrder order = TRY(decode_keeper_order(TRY(receive())));
    TRY(image::load_libraries());
    switch (order.what) {
      case KeeperOrder::What::pull:
        return pull(order);
      case KeeperOrder::What::remove:
        return remove(order);
      case KeeperOrder::What::prune:
        return prune();
      case KeeperOrder::What::push:
        return push(order);
      case KeeperOrder::What::commit:
        return commit(order);
    }
    return fail(Code::internal, "an order for nothing that is known");
  }

  void send(const KeeperNews& news) const {
    std::string text = encode(news);
    (void)::send(channel_, text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  Result<std::string> receive() const {
    std::string bytes(kMaxKeeperMessage, '\0');
    ssize_t n = ::recv(channel_, bytes.data(), bytes.size(), MSG_TRUNC);
    if (n < 0) return fail_errno("receive an order");
    if (n == 0) return fail(Code::cancelled, "the server is gone");
    if (static_cast<size_t>(n) > bytes.size()) return fail(Code::too_large, "the order is too large");
    bytes.resize(static_cast<size_t>(n));
    return bytes;
  }

  Result<image::Store> open_store() const {
    image::Store::Options options;
    options.state_dir = settings_.state_dir;
    options.service_gid = settings_.service_gid;
    return image::Store::open(std::move(options));
  }

  Result<KeeperNews> pull(const KeeperOrder& order) {
    // The directories of the store, for hosts that have no image yet. Not otherwise: it may be locked.
    struct stat info{};
    if (::stat((settings_.state_dir + "/images/store/trash").c_str(), &info) < 0) TRY(open_store());
    Pull::Watch watch{.progress = [this](const KeeperNews& news) { tell(news); }, .cancel_fd = channel_};
    KeeperNews done{.kind = KeeperNews::Kind::done};
    done.id = TRY(in_context("pull " + order.name, Pull(settings_, order, std::move(watch)).run()));
    return done;
  }

  Result<KeeperNews> push(const KeeperOrder& order) {
    Push::Watch watch{.progress = [this](const KeeperNews& news) { tell(news); }, .cancel_fd = channel_};
    KeeperNews done{.kind = KeeperNews::Kind::done};
    done.id = TRY(in_context("push " + order.target, Push(settings_, order, std::move(watch)).run()));
    return done;
  }

  // Not every piece. But a step that people would see is told at once: when the registry falls silent after
  // it, nothing else brings it to them.
  void tell(const KeeperNews& news) {
    uint64_t moved = news.downloaded > last_.downloaded ? news.downloaded - last_.downloaded
                                                        : last_.downloaded - news.downloaded;
    bool step = news.layers != last_.layers || news.unpacked != last_.unpacked || moved * kSteps > news.total;
    if (!step && Clock::now() - told_ < kToldEvery) return;
    told_ = Clock::now();
    last_ = news;
    send(news);
  }

  Result<KeeperNews> remove(const KeeperOrder& order) const {
    auto store = TRY(open_store());
    using InUse = image::Store::InUse;
    TRY(store.remove(order.name, order.force ? InUse::keep_until_unused : InUse::refuse));
    return KeeperNews{.kind = KeeperNews::Kind::done, .removed = {order.name}};
  }

  Result<KeeperNews> commit(const KeeperOrder& order) const {
    auto store = TRY(open_store());
    KeeperNews done{.kind = KeeperNews::Kind::done};
    done.id = TRY(image::commit(store, *order.commit, settings_.directories));
    return done;
  }

  Result<KeeperNews> prune() const {
    auto store = TRY(open_store());
    auto shrunk = TRY(image::shrink_to(store, 0, ""));
    KeeperNews news{
        .kind = KeeperNews::Kind::done, .removed = std::move(shrunk.names), .freed = shrunk.bytes};
    if (auto blobs = BlobDirectory::open(settings_.state_dir))
      news.freed += blobs->sweep(BlobDirectory::Which::all);
    return news;
  }

  int channel_;
  KeeperSettings settings_;
  Clock::time_point told_{};
  KeeperNews last_{};
};

}  // namespace

int run_keeper(int channel, KeeperSettings settings) {
  log::set_role("images");
  ::signal(SIGPIPE, SIG_IGN);
  // The launcher made it for a server that must not wait; here waiting is all there is to do.
  int flags = ::fcntl(channel, F_GETFL);
  if (flags < 0 || ::fcntl(channel, F_SETFL, flags & ~O_NONBLOCK) < 0) return 1;
  Keeper keeper(channel, std::move(settings));
  auto done = keeper.serve();
  if (!done && done.error().code == Code::cancelled) return 0;
  if (!done) done = KeeperNews{.kind = KeeperNews::Kind::failed, .error = std::move(done.error())};
  keeper.send(*done);
  return 0;
}

}  // namespace osb::registry
