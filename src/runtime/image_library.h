#pragma once

// The images that a runtime has, for whoever looks after them: what is here, what can be brought here or go.
// Belongs to the server's loop.

#include <memory>
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
};

struct RemovedImages {
  std::vector<std::string> names;
  uint64_t freed = 0;  // bytes
};

class ImageLibrary {
 public:
  virtual ~ImageLibrary() = default;
  virtual Result<std::vector<StoredImage>> list() = 0;
  // Begins a pull, or joins the one that is under way for the same image. Code::unsupported: no pulls here;
  // Code::invalid_argument: this is no name.
  virtual Result<PullPtr> pull(const ImageRequest& request) = 0;
  // Begins a push, or joins the one that is under way for the same. Its outcome is the digest of the
  // manifest. Code::unsupported, Code::not_found: there is no such image; Code::invalid_argument: the target
  // is no name.
  virtual Result<PullPtr> push(const PushRequest& request) = 0;
  // Code::not_found; Code::wrong_state while sandboxes use it and it is not forced.
  virtual io::Task<Result<void>> remove(std::string name, bool force) = 0;
  // What came from registries and no sandbox uses.
  virtual io::Task<Result<RemovedImages>> prune() = 0;
};

}  // namespace osb::runtime
