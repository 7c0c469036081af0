#pragma once

// What the launcher was started with. It comes from whoever started the launcher as root, never from the
// server: the server's wishes are checked against it.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace osb::launcher {

// Id ranges of sandboxes: 65536 ids each, above the ranges that distributions hand out (subuid) and that
// service managers give to containers, and below the sign bit that some programs trip over.
inline constexpr uint32_t kFirstId = 0x7000'0000;
inline constexpr uint32_t kIdsPerSandbox = 0x1'0000;
inline constexpr uint32_t kRanges = 0xfc0;
// Behind them, of no sandbox: whose the files of named volumes are on the host; see volume_ids.h.
inline constexpr uint32_t kFirstVolumeId = kFirstId + kRanges * kIdsPerSandbox;

struct Settings {
  std::string state_dir;  // ours alone; see StateDir
  uid_t service_uid = 0;  // who the server runs as
  gid_t service_gid = 0;
  gid_t engine_gid = 0;       // whose members may use an engine's socket: the server is one; 0: there is none
  std::string engine_socket;  // to which the server is connected where its user may not; "": there is none
  std::vector<std::string>
      sources;  // directories that may be shown to sandboxes, besides those of the state directory
  // Directories of the host that sandboxes may be given, or what is below: the operator's allow-list.
  std::vector<std::string> shared_paths;
  std::vector<std::string> server;  // command line of the server
  // Command line of the egress process, and who it runs as; empty: there is none.
  std::vector<std::string> egress;
  uid_t egress_uid = 0;
  gid_t egress_gid = 0;
  // Started by an ordinary user: everything happens in a user namespace that was entered first, whose root is
  // that user. No idmapped layers, device nodes or groups of the host.
  bool rootless = false;
  // Root without the rights of root, as in an ordinary container: sandboxes are an engine's, and none is made
  // here.
  bool engine_only = false;
  std::string runsc_platform;  // how runsc is to intercept what programs do
  std::string runtime_dir;     // where sockets go, when somebody keeps such a place for us; may be empty

  // Descriptors inherited from the starter.
  int listener_fd = -1;  // where clients connect; every generation of the server gets it
  int server_fd = -1;    // the executable of the server
  int execd_fd = -1;     // sealed memory with execd
  int runsc_fd = -1;     // the executable of runsc; -1: there is none
  int egress_fd = -1;    // likewise with the egress process; -1: there is none
  int notes_fd = -1;     // sealed memory with what root has read for the server; -1: nothing
};

std::vector<std::string> to_arguments(const Settings& settings);
Result<Settings> from_arguments(const std::vector<std::string>& arguments);

// Names below the state directory.
namespace state {
inline constexpr char kSandboxes[] = "sandboxes";  // <id>/<layer>.upper and .work; root only
inline constexpr char kSpares[] = "spares";        // the same, waiting for a sandbox; see Roots; root only
inline constexpr char kTrash[] = "trash";          // what a worker removes; root only
inline constexpr char kRun[] = "run";        // <id>.api and <id>.control, listening sockets; service group
inline constexpr char kImages[] = "images";  // unpacked images, canonical ids; root only
inline constexpr char kSnapshots[] = "images/snapshots";  // see SnapshotStore; root only
inline constexpr char kSnapshotLayers[] = "images/snapshots/layers";
inline constexpr char kMount[] =
    "mount";  // where a sandbox being made sees its new root; always empty on the host
inline constexpr char kLowers[] = "lowers";    // likewise for its layers: directories 0, 1, 2, ...
inline constexpr char kDatabase[] = "db";      // the server's own
inline constexpr char kViews[] = "views";      // files that show a sandbox its own size; see LimitViews
inline constexpr char kDisks[] = "disks";      // empty file systems, one per size; see disk.h; root only
inline constexpr char kVolumes[] = "volumes";  // <owner>/<name>/; see VolumeStore; root only
inline constexpr char kSecret[] = "secret";    // see secret.h; only the service's user reads it
inline constexpr char kEgress[] = "egress";    // the egress process's own: policies of sandboxes
inline constexpr char kContainers[] = "containers";  // of other engines that have an outlet; see Containers
inline constexpr char kCatalog[] = "catalog";  // which images there are; root writes, the service group reads
}  // namespace state

// The name of a service's cgroup before there were identities (identity.h): made from the path as it was
// written. Sandboxes of such a service may still be in it.
std::string cgroup_name(const std::string& state_dir);

}  // namespace osb::launcher
