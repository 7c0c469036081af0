#pragma once

// What a sandbox is made from: the shape of it (SandboxSpec), which is all that has to be known to prepare
// one, and who takes it and what runs in it (Claim), which comes when it is started.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "sandbox/limits.h"
#include "sandbox/snapshot.h"
#include "sandbox/volume.h"

namespace osb::runtime {

using sandbox::Limits;

// For a registry. Used while an image is brought here; never stored, never logged.
struct Credentials {
  std::string username, password;
};

struct ImageRequest {
  enum class Pull { if_missing, always, never };
  std::string reference;  // as the client wrote it
  std::optional<Credentials> auth = {};
  std::string platform = {};      // "linux/arm64"; "": what the runtime runs
  std::optional<Pull> pull = {};  // absent: as the server is configured
  // Of a snapshot: this very image, whatever the reference means by now ("": the reference says it), and what
  // lies over it.
  std::string id = {};
  std::vector<sandbox::SnapshotLayer> layers = {};
};

// "always", "if-not-present" or "never".
std::optional<ImageRequest::Pull> pull_from(std::string_view word);

// Something from outside that the sandbox sees.
struct Mount {
  enum class Kind { host_path, volume, object_store };
  enum class Access { read_only, read_write };
  std::string source;  // a path of the host, the name of a volume or of a bucket
  std::string target;  // a path inside
  Access access = Access::read_only;
  Kind kind = Kind::host_path;
  std::string sub_path = {};               // of the source
  bool create = true;                      // a volume that is not there is made,
  bool ephemeral = false;                  // and goes with the last sandbox that has it
  std::optional<int64_t> size_bytes = {};  // of one that is made
};

using sandbox::NamedVolume;

// What the sandbox may reach.
struct NetworkPolicy {
  struct Rule {
    bool allow = false;
    std::string target;
  };
  bool allow_the_rest = false;
  std::vector<Rule> egress = {};
};

// What is known of its life when it is made.
struct Life {
  std::optional<WallTime> expires = {};
  std::string renewal = {};  // by how many seconds a use renews it; "": not at all
  std::map<std::string, std::string> extensions = {};
};

struct SandboxSpec {
  std::string handle;  // what it is called on the host: a UUID that says nothing about the id
  ImageRequest image;
  Limits limits = {};
  bool read_only_root = false;  // nothing but /tmp, /run and devices can be written
  std::string owner = {};       // whose volumes `mounts` names
  std::vector<Mount> mounts = {};
  std::optional<int64_t> shm_bytes = {};  // of /dev/shm; absent: what the runtime gives
  std::optional<NetworkPolicy> network = {};
  // For whoever looks at an engine; nothing depends on them. Only those who may do everything on the host
  // can.
  std::string id = {};  // what its owner calls it, or will
  std::map<std::string, std::string> labels = {};
  std::optional<Life> life = {};  // nothing for one that waits for whoever takes it
};

// At most kMaxRecord bytes are kept.
inline constexpr size_t kMaxRecord = 64 * 1024;

struct Claim {
  std::string id;  // what its owner calls it; for the environment inside, nothing else
  std::vector<std::string> entrypoint = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::string record = {};  // kept beside the sandbox for recall()
};

}  // namespace osb::runtime
