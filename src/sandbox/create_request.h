#pragma once

// What somebody wants a new sandbox to be, checked: whatever wire it came by, it can be made unless the
// runtime says otherwise.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/limits.h"
#include "sandbox/sandbox.h"
#include "sandbox/snapshot.h"
#include "sandbox/volume.h"

namespace osb::sandbox {

// For how many seconds each use renews the sandbox: in its extensions, and not given back.
inline constexpr char kRenewExtension[] = "access.renew.extend.seconds";

// After how many seconds without a use the sandbox is paused, until the next use: likewise.
inline constexpr char kIdleExtension[] = "access.pause.idle.seconds";

// "true": its ports need an access token besides (server/secure_access.h). Set by a request's secureAccess,
// and not given back.
inline constexpr char kSecuredExtension[] = "access.secured";

// For the registry that the image is in: for the runtime that brings it here, nobody else.
struct ImageAuth {
  std::string username, password;
};

// What the sandbox may reach.
struct NetworkPolicy {
  struct Rule {
    bool allow = false;
    std::string target = {};
  };
  bool allow_the_rest = false;
  std::vector<Rule> egress = {};
};

// In the extensions of a request: when to ask the registry of an image, "always", "if-not-present" or
// "never".
inline constexpr char kPullPolicyExtension[] = "opensandbox.extensions.image-pull-policy";

// How large /dev/shm may become, as a size: 512Mi.
inline constexpr char kShmExtension[] = "opensandbox.extensions.shm-size";

struct CreateRequest {
  std::string id = {};       // of the sandbox; "": a new one
  std::string runtime = {};  // "": the server's standard one
  std::string image = {};
  std::string snapshot = {};              // made from it; `image` is its name as an image
  std::optional<SnapshotBase> base = {};  // what it is, once it was found
  bool restore_env = false;               // with the environment that its sandbox had
  std::optional<ImageAuth> image_auth = {};
  std::optional<NetworkPolicy> network_policy = {};
  std::vector<Volume> volumes = {};
  std::vector<std::string> entrypoint = {};  // as it was written; words_of() is what is executed
  std::vector<std::pair<std::string, std::string>> env = {};
  Limits limits = {};
  std::map<std::string, std::string> limits_text = {};  // as they were written
  std::optional<Metadata> metadata = {};
  std::map<std::string, std::string> extensions = {};  // those that are given back
  std::string platform = {};                           // "linux/amd64", or ""
  std::optional<std::chrono::seconds> timeout = {};    // absent: never expires
  // One of this pool's sandboxes, instead of a new one; then what shapes a sandbox comes from the pool, and
  // the entrypoint may be empty.
  std::string pool = {};
  bool read_only_root = false;
  std::optional<int64_t> shm_bytes = {};  // absent: what the server gives
  // What execd is to run before the entry process and beside it, as JSON (execd/hooks.h); "": nothing.
  std::string hooks = {};
};

// What runs in a sandbox for which nobody says anything else.
std::vector<std::string> idle_entrypoint();

// One element with a blank in it.
bool is_command_line(const std::vector<std::string>& entrypoint);
// What to execute: an entrypoint of one element with a blank in it is a command line, cut by a shell's rules
// of quoting. Clients of one family send all of theirs so.
std::vector<std::string> words_of(std::vector<std::string> entrypoint);

// The sandbox that a request asks for; its state is Pending.
Sandbox new_sandbox(std::string id, const Principal& owner, const CreateRequest& request, WallTime now);

}  // namespace osb::sandbox
