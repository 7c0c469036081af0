#pragma once

// The images that a runtime has, for whoever looks after them: what is here, what can be brought here or go.
// Belongs to the server's loop.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/task.h"
#include "runtime/runtime.h"

namespace osb::runtime {

// How far a pull is; zeros: it is not known yet.
struct PullProgress {
  uint64_t downloaded = 0, total = 0;  // bytes
  uint64_t unpacked = 0, layers = 0;   // layers that had to come
};
// "12 of 48 MB downloaded": part of a sentence for people.
std::string to_text(const PullProgress& progress);

// A pull under way, shared by everybody who waits for it. It goes on when nobody does.
struct PullState {
  explicit PullState(const io::Executor& executor) : done(executor) {}
  std::string name = {};  // in full
  PullProgress progress = {};
  io::Event done;
  // The id of the image. Code::not_found: there is no such image; unauthenticated: the registry wants another
  // name or password; unavailable, timeout: it is away; corrupt: what came cannot be used; else this host.
  Result<std::string> outcome = fail(Code::internal, "the pull has not ended");
};
using PullPtr = std::shared_ptr<PullState>;

// "12 of 48 MB uploaded", of a push.
std::string to_push_text(const PullProgress& progress);

// What the error of a pull means for a create.
CreateFailure pull_failure(const Error& error);

struct PushRequest {
  std::string owner = {};     // who asks
  std::string image = {};     // a name of this host
  std::string snapshot = {};  // or a snapshot in its place
  std::string target = {};    // what it is to be called; "" is the image's own name
  std::optional<Credentials> auth = {};
  bool own_logins = false;  // the passwords that the host has may be used
};

struct StoredImage {
  std::string id;
  std::vector<std::string> names;
  uint64_t bytes = 0, entries = 0;
  size_t layers = 0;
  WallTime since = {};
  std::string manifest;  // digest in the registry; "" for one that was imported
  std::vector<std::string> entrypoint, cmd;
  std::string user, workdir;
  std::vector<std::pair<std::string, std::string>> env;
  std::map<std::string, std::string> labels = {};
  std::vector<std::string> ports = {};
  std::string owner = {};  // of one that was made of a sandbox
};

// A snapshot that becomes an image. What is absent is as the image below it says.
struct ImageCommit {
  std::string snapshot;  // complete, and not deleted meanwhile
  std::string base;      // the reference that its sandbox was made from
  std::string owner;     // whose it is, and will be: nobody else sees it
  std::string name;
  std::vector<std::pair<std::string, std::string>> env = {};  // added
  std::map<std::string, std::string> labels = {};             // likewise
  std::vector<std::string> ports = {};                        // likewise
  std::optional<std::string> user = {}, workdir = {};
  std::optional<std::vector<std::string>> entrypoint = {}, cmd = {};
};

struct RemovedImages {
  std::vector<std::string> names;
  uint64_t freed = 0;  // bytes
};

class ImageLibrary {
 public:
  virtual ~ImageLibrary() = default;
  virtual Result<std::vector<StoredImage>> list() = 0;
  // What a create of this name by `owner` would be made from, or the image whose id begins so. Without an id:
  // `host`, or a directory of the configuration, by its name there. Code::not_found: it would have to be
  // pulled, or there is none; Code::invalid_argument: several ids begin so.
  virtual Result<StoredImage> find(const std::string& owner, const std::string& asked) = 0;
  // Names of what is there without being stored: `host`, and directories of the configuration.
  virtual std::vector<std::string> directories() const = 0;
  // Begins a pull, or joins the one that is under way for the same image. Code::unsupported: no pulls here;
  // Code::invalid_argument: this is no name.
  virtual Result<PullPtr> pull(const ImageRequest& request) = 0;
  // The pull of this image that is under way; null: there is none.
  virtual PullPtr pulling(const std::string& asked) const = 0;
  // Begins a push, or joins the one that is under way for the same. Its outcome is the digest of the
  // manifest. Code::unsupported, Code::not_found: there is no such image; Code::invalid_argument: the target
  // is no name.
  virtual Result<PullPtr> push(const PushRequest& request) = 0;
  // Code::not_found; Code::wrong_state while sandboxes use it and it is not forced.
  // Others' images of sandboxes are not there for `owner`.
  virtual io::Task<Result<void>> remove(std::string owner, std::string name, bool force) = 0;
  // What came from registries and no sandbox uses.
  virtual io::Task<Result<RemovedImages>> prune() = 0;
  // Whether commit() would take the name, before anything is captured for it.
  virtual Result<void> check_name(const std::string& name, const std::string& owner) = 0;
  // The image's id. Code::already_exists: the name is another's; Code::invalid_argument: it is none, or there
  // is no such user; Code::not_found: what it was made over is gone.
  virtual io::Task<Result<std::string>> commit(ImageCommit what) = 0;
};

}  // namespace osb::runtime
