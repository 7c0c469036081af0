#pragma once

// One image from a registry into the store: what stands behind its name, the layers that are missing, the
// store's lock only while they are unpacked.

#include <functional>
#include <string>

#include "image/pull_reference.h"
#include "image/store.h"
#include "registry/blob_directory.h"
#include "registry/fetch_talk.h"
#include "registry/keeper.h"

namespace osb::registry {

class Pull {
 public:
  struct Watch {
    std::function<void(const KeeperNews&)> progress;
    int cancel_fd = -1;  // readable: give up; what is downloaded stays for the next one
  };
  Pull(const KeeperSettings& settings, const KeeperOrder& order, Watch watch)
      : settings_(settings), order_(order), watch_(std::move(watch)) {}

  // The id of the image, which has its full name now. Code::not_found, unauthenticated, unavailable and
  // timeout are the registry's; corrupt, too_large and unsupported are about the image; exhausted: there is
  // no room for it, and nothing of it is left; all others are this host's.
  Result<std::string> run();

 private:
  Result<std::string> attempt(bool& worth_another);
  Result<Resolved> hear_plan(FetchTalk& fetcher);
  Result<void> hear_end(FetchTalk& fetcher);
  std::optional<std::string> is_here(const Resolved& plan) const;
  bool has_layer(const std::string& diff_id) const;
  Result<std::string> unpack(const Resolved& plan, const BlobDirectory& blobs);
  bool leave_mirrors_out(const Error& error);
  void tell();

  const KeeperSettings& settings_;
  const KeeperOrder& order_;
  Watch watch_;
  image::PullReference reference_;
  KeeperNews news_;
  bool asks_mirrors_ = true;
};

}  // namespace osb::registry
