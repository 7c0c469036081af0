#pragma once

// One image of this host to a registry: what the registry has of it is not sent, the rest is packed by
// workers without rights (image/layer_pack.h) into files without names, which the fetcher sends.

#include <functional>
#include <string>
#include <vector>

#include "image/push_source.h"
#include "registry/fetch_talk.h"
#include "registry/keeper.h"

namespace osb::registry {

class Push {
 public:
  struct Watch {
    std::function<void(const KeeperNews&)> progress;
    int cancel_fd = -1;  // readable: give up; nothing is left here
  };
  Push(const KeeperSettings& settings, const KeeperOrder& order, Watch watch)
      : settings_(settings), order_(order), watch_(std::move(watch)) {}

  // The digest of the manifest that the registry has now. Codes as those of a pull (pull.h);
  // Code::wrong_state when the image was removed meanwhile.
  Result<std::string> run();

 private:
  struct Room {
    Fd write, read;  // two views of one file without a name
  };
  Result<Room> make_room() const;
  Result<PushWish> wish(const image::PullReference& target) const;
  Result<std::vector<int>> hear_found(FetchTalk& fetcher) const;
  Result<image::PackedForm> form_of(size_t layer, int found, const Room& room, bool& is_here);
  Result<void> hear_end(FetchTalk& fetcher);
  void tell();

  const KeeperSettings& settings_;
  const KeeperOrder& order_;
  Watch watch_;
  image::PushSource source_;
  KeeperNews news_;
};

}  // namespace osb::registry
