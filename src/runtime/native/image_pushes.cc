// Pushes of the native runtime's images: what is pushed is settled here, the rest is the keeper's.

#include "base/log.h"
#include "image/pull_reference.h"
#include "image/reference.h"
#include "runtime/native/image_pulls.h"

namespace osb::runtime {

// The id of what a name stands for: it may be moved while the push is under way.
Result<std::string> ImagePulls::name_of(const std::string& asked, const std::string& owner) {
  auto index = TRY(index_.current());
  for (const std::string& name : image::candidates(asked, {})) {
    if (const image::Image* found = index->find(name); found && found->is_for(owner)) return found->id;
  }
  if (auto reference = image::parse_pull_reference(asked, settings_.default_registry)) {
    if (const image::Image* found = index->find(reference->name()); found && found->is_for(owner))
      return found->id;
  }
  if (asked == image::kHostImage)
    return fail(Code::unsupported, "host is this machine's own files, and no image that could be pushed");
  return fail(Code::not_found,
              "there is no image of this name in the store of this server; osb images ls "
              "lists those that can be pushed");
}

Result<PullPtr> ImagePulls::push(const PushRequest& request) {
  if (!settings_.obstacle.empty()) return fail(Code::unsupported, settings_.obstacle);
  if (settings_.policy == ImageRequest::Pull::never)
    return fail(Code::unsupported, "this server speaks to no registry: registry.pull_policy is \"never\"");
  const std::string& wanted = request.target.empty() ? request.image : request.target;
  auto target = TRY(image::parse_pull_reference(wanted, settings_.default_registry));
  if (!target.digest.empty())
    return fail(Code::invalid_argument, "an image is pushed under a tag, not under a digest");
  registry::KeeperOrder order{.what = registry::KeeperOrder::What::push};
  order.snapshot = request.snapshot;
  if (request.snapshot.empty()) order.name = TRY(name_of(request.image, request.owner));
  order.target = target.name();
  order.own_logins = request.own_logins;
  if (request.auth) order.login = registry::Login{request.auth->username, request.auth->password};
  // Whoever joins it must be allowed to: the same, with the same password.
  std::string key =
      order.name + "\n" + order.snapshot + "\n" + order.target + "\n" + (order.own_logins ? "own" : "");
  if (order.login) key += "\n" + order.login->username + "\n" + order.login->password;
  if (auto found = pushing_.find(key); found != pushing_.end()) return found->second;
  auto push = std::make_shared<PullState>(executor_);
  push->name = order.target;
  pushing_[key] = push;
  tasks_.spawn(run_push(std::move(key), std::move(order), push));
  return push;
}

io::Task<> ImagePulls::run_push(std::string key, registry::KeeperOrder what, PullPtr push) {
  log::info("pushing an image", {{"image", push->name}});
  auto done = co_await order(std::move(what), push);
  pushing_.erase(key);
  if (done) {
    push->outcome = std::move(done->id);
    log::info("image pushed", {{"image", push->name}});
  } else {
    log::warn("image not pushed", {{"image", push->name}, {"error", done.error().message}});
    push->outcome = std::unexpected(std::move(done.error()));
  }
  push->done.set();
}

}  // namespace osb::runtime
