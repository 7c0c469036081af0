#pragma once

// What the launcher does with sandboxes, as its loop sees it. Sandboxes (sandboxes.h) does it; tests of the
// loop have one of their own.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "launcher/forked.h"
#include "launcher/messages/volumes.h"
#include "launcher/plan.h"
#include "launcher/snapshot_manifest.h"
#include "launcher/started.h"
#include "launcher/volume_path.h"

namespace osb::launcher {

struct Recalled {
  std::string record;
  Started first_process;  // zeros when there is none
};

// The way out of a sandbox, for the egress process.
struct Listeners {
  std::string id;
  bool is_open = false;         // without a policy of its own the default one holds; else nothing leaves
  std::vector<Fd> descriptors;  // a pidfd of its first process, the sockets of its outlet
};

class SandboxTable {
 public:
  virtual ~SandboxTable() = default;

  // Clones the sandbox. Its process goes on by itself; finish() tells how that went.
  virtual Result<Starting> start(const Plan& plan) = 0;
  // To be called when `report` is readable: the pidfd for the server, or what failed. Then the caller still
  // has to kill() and remove() it.
  virtual Result<Fd> finish(Starting& starting, const Plan& plan) = 0;

  // Kills every process. The pidfd to wait for, or nothing when none runs.
  virtual Result<Fd> kill(const std::string& id) = 0;
  // After kill, once no process is left. Code::exhausted: the kernel still holds something; try again.
  virtual Result<void> remove(const std::string& id, bool keep_files) = 0;

  // Code::not_found only when that process is gone.
  virtual Result<Fd> adopt(const std::string& id, const Started& first_process) = 0;
  // What is known about a sandbox that nobody else knows about.
  virtual Result<Recalled> recall(const std::string& id) = 0;
  virtual Result<void> keep_record(const std::string& id, std::string_view record) = 0;
  virtual Result<std::vector<Fd>> sockets(const std::string& id, size_t count) = 0;
  // Once, until nobody_listens(); Code::already_exists then.
  virtual Result<Listeners> listeners(const std::string& id) = 0;
  // Readable when a sandbox without listeners has something to say; -1: nobody ever will.
  virtual int callers() { return -1; }
  // The listeners of such a one; nothing when there is none.
  virtual std::optional<Listeners> next_caller() { return std::nullopt; }
  // A container of another engine gets an outlet; from now on it has listeners.
  virtual Result<void> add_container(const std::string& id, const std::string& container, int64_t pid) {
    (void)id, (void)container, (void)pid;
    return fail(Code::unsupported, "containers get no network here");
  }
  // A connection to the engine that makes such containers. Does not wait for it.
  virtual Result<Fd> connect_engine() {
    return fail(Code::unsupported, "refused: this service was started without an engine's socket");
  }
  // Whoever had listeners has ended, and they with it.
  virtual void nobody_listens() {}
  virtual Result<int64_t> oom_kills(const std::string& id) = 0;

  // Stops or continues every process. A freeze is complete when frozen() says so.
  virtual Result<void> freeze(const std::string& id, bool frozen) = 0;
  virtual Result<Fd> open_events(const std::string& id) = 0;
  virtual Result<bool> frozen(int events) = 0;
  // Whether a freeze was asked for and not taken back, complete or not.
  virtual Result<bool> is_to_freeze(const std::string& id) = 0;

  // At most `most` ids in order, behind `after`.
  virtual Result<std::vector<std::string>> list(const std::string& after, size_t most) = 0;
  // Whether a sandbox could be made now.
  virtual Result<void> health() = 0;

  // A process that may write the store of images; our end of its channel.
  virtual Result<Fd> start_image_keeper() { return fail(Code::unsupported, "there is no store of images"); }
  // Snapshots. The first two take their time, in processes of their own.
  virtual Result<Forked> capture(const std::string& id, const std::string& snapshot) = 0;
  virtual Result<Forked> keep_snapshot(const std::string& id, Lasting lasting) = 0;
  virtual Result<void> drop_snapshot(const std::string& id) = 0;
  // Code::not_found unless it is kept for so long, or longer.
  virtual Result<FoundSnapshot> find_snapshot(const std::string& id, Lasting lasting) = 0;
  virtual Result<std::vector<std::string>> list_snapshots(const std::string& after, size_t most) = 0;

  // What the sandbox has changed, written to a pipe of which this is the other end.
  virtual Result<Fd> diff(const std::string& id) = 0;

  // Volumes. A named one that has to be made waits for the disk, in a process of its own: when that has
  // ended, ask again.
  struct Ensured {
    std::optional<Forked> under_way = {};
  };
  virtual Result<Ensured> ensure_volume(const VolumeRequest& request) {
    (void)request;
    return fail(Code::unsupported, "there are no volumes");
  }
  virtual Result<std::vector<VolumesAnswer::Volume>> list_volumes(const std::string& owner,
                                                                  const std::string& after, size_t most) {
    (void)owner, (void)after, (void)most;
    return fail(Code::unsupported, "there are no volumes");
  }
  virtual Result<void> drop_volume(const VolumePath& path) {
    (void)path;
    return fail(Code::unsupported, "there are no volumes");
  }

  // Makes things ahead of need; true when there was something to make.
  virtual bool prepare() = 0;
  // Gives up what was made ahead or kept for the next sandbox, but for a few things that cost nothing to
  // keep. False when the kernel did not let go of something yet.
  virtual bool drop_spares() = 0;

  virtual bool trash_is_empty() = 0;
  // In a process of its own; see StateDir.
  [[noreturn]] virtual void run_trash_worker() = 0;
};

}  // namespace osb::launcher
