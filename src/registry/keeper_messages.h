#pragma once

// What the server asks of the process that keeps images (keeper.h), and what it hears back: one JSON text per
// message of a SOCK_SEQPACKET pair. One order, then news until one of them is the last.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "image/commit.h"
#include "registry/login.h"

namespace osb::registry {

inline constexpr size_t kMaxKeeperMessage = 64 * 1024;

struct KeeperOrder {
  enum class What { pull, remove, prune, push, commit };
  What what = What::pull;
  std::string name = {};                          // of an image; push: or its id
  std::string platform = {};                      // pull: "linux/amd64"
  std::optional<Login> login = {};                // pull, push
  bool force = false;                             // remove: also when sandboxes use it
  std::string snapshot = {};                      // push: the id of one, in place of an image
  std::string target = {};                        // push: what it is to be called
  bool own_logins = true;                         // push: the passwords of this host may be used
  std::string owner = {};                         // commit: whose image it will be
  std::optional<image::CommitOrder> commit = {};  // its name and owner are those above
};
std::string encode(const KeeperOrder& order);
Result<KeeperOrder> decode_keeper_order(std::string_view text);

struct KeeperNews {
  enum class Kind { progress, done, failed };
  Kind kind = Kind::progress;
  // progress
  uint64_t downloaded = 0, total = 0;  // bytes, also those of a push; no total: it is not known yet
  uint64_t unpacked = 0, layers = 0;   // of the layers that had to come; of a push: packed
  // done
  std::string id = {};                    // of the image that was pulled; of a push: of its manifest
  std::vector<std::string> removed = {};  // names
  uint64_t freed = 0;                     // bytes
  // failed
  Error error = {};
};
std::string encode(const KeeperNews& news);
Result<KeeperNews> decode_keeper_news(std::string_view text);

}  // namespace osb::registry
