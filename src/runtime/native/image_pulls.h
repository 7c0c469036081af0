#pragma once

// The native runtime's images as a library: the index says what there is; what changes the store is done by a
// process of root that the launcher starts for each order (registry/keeper.h).

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "calls/launcher_client.h"
#include "image/index.h"
#include "registry/keeper_messages.h"
#include "runtime/image_library.h"

namespace osb::runtime {

class ImagePulls : public ImageLibrary {
 public:
  struct Settings {
    std::string state_dir;
    std::string default_registry;
    ImageRequest::Pull policy = ImageRequest::Pull::if_missing;  // never: whatever a request says
    std::string obstacle = {};                                   // why there are none here, if there are none
    // Of a reference: see Images::base_of().
    std::function<std::string(const std::string&)> base_of = {};
    // The id of what Images::find() has for a reference and an owner; "" without one.
    std::function<Result<std::string>(const std::string&, const std::string&)> id_of = {};
    std::vector<std::string> directories = {};  // names of images that are not in the store
  };
  ImagePulls(io::Executor executor, Settings settings, calls::LauncherClient& launcher, io::TaskGroup& tasks);

  Result<std::vector<StoredImage>> list() override;
  Result<StoredImage> find(const std::string& owner, const std::string& asked) override;
  std::vector<std::string> directories() const override { return settings_.directories; }
  Result<PullPtr> pull(const ImageRequest& request) override;
  PullPtr pulling(const std::string& asked) const override;
  Result<PullPtr> push(const PushRequest& request) override;
  io::Task<Result<void>> remove(std::string owner, std::string name, bool force) override;
  io::Task<Result<RemovedImages>> prune() override;
  Result<void> check_name(const std::string& name, const std::string& owner) override;
  io::Task<Result<std::string>> commit(ImageCommit what) override;

  // Whether an image is to be asked for at its registry, given what is here.
  enum class Here { no, from_registry, local };
  bool wants_pull(const ImageRequest& request, Here here) const;
  const Settings& settings() const { return settings_; }

 private:
  // One order; `pull` hears of its progress and may be null.
  io::Task<Result<registry::KeeperNews>> order(registry::KeeperOrder order, PullPtr pull);
  io::Task<Result<Fd>> start_keeper();
  Result<std::string> name_of(const std::string& asked, const std::string& owner);
  io::Task<> run_push(std::string key, registry::KeeperOrder order, PullPtr push);
  io::Task<> run_pull(std::string key, registry::KeeperOrder order, PullPtr pull);

  io::Executor executor_;
  Settings settings_;
  calls::LauncherClient& launcher_;
  io::TaskGroup& tasks_;
  image::IndexReader index_;
  std::map<std::string, PullPtr> running_;  // pulls
  std::map<std::string, PullPtr> pushing_;
};

}  // namespace osb::runtime
