#pragma once

// What a runtime is: something that makes isolated Linux sandboxes with an execd in each, and lets the server
// reach them. Values in, typed results out; no route knows which runtime runs. A server has one or more
// (runtimes.h); a sandbox's row says whose it is.
//
// A sandbox outlives the server. `identity` is what a runtime needs to recognise a sandbox again after a
// restart (an opaque text for the store): recovery calls list(), then adopt() for each stored sandbox and
// recall() for everything else. A runtime knows sandboxes by their handles: whatever it names after them may
// be seen by others on the host, and the id must not, except by those who may use an engine.
//
// A runtime works for one owner (the identity of the service's state directory), given when it is made. On
// an engine that others use, too, it lists what was made for this owner and touches nothing else.
//
// The engine behind a runtime may be away, or slow. Every call that needs it then fails with
// Code::unavailable or Code::timeout, and that means: nobody knows. It is never an end, and never a success;
// whoever asked keeps what is known and asks again. All calls belong to the server's loop.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/stream.h"
#include "runtime/capabilities.h"
#include "runtime/spec.h"

namespace osb::runtime {

using io::Task;

inline constexpr uint16_t kExecdPort = 44772;
inline constexpr uint16_t kEgressPort = 18080;

struct CreateFailure {
  enum class Kind {
    image_not_found,
    image_unreachable,  // its registry is away
    image_refused,      // its registry wants another name or password
    image_invalid,      // what the registry gave is not what it promised, or nothing for this machine
    bad_entrypoint,     // missing, not executable, wrong architecture
    entry_ended,        // it was started, and has failed before anybody could be told
    bad_limit,          // cannot be enforced here
    unsupported,        // a part of the spec that this runtime does not have
    host_path_refused,  // a directory of the host that no sandbox may have, or not so
    sub_path_refused,   // a directory of a volume to which no plain way leads
    sub_path_driver,    // the volume is of a kind that shows itself as a whole only
    host_path_failed,   // one that cannot be made
    volume_missing,     // a volume that has to be there
    volume_failed,
    overloaded,   // no capacity now; nothing was started
    unavailable,  // the engine is away: whether something was started is not known
    step_failed,  // the error says which step of the set-up, and why
  };
  Kind kind = Kind::step_failed;
  Error error;
};

// A sandbox that could be started: its image is here, what is to be done is known, and what can be made ahead
// may be made. Dropping it leaves nothing behind; of one that dies with its server, the runtime's next life
// clears away what there is.
class Prepared {
 public:
  virtual ~Prepared() = default;
};
using PreparedPtr = std::unique_ptr<Prepared>;

template <class T>
using Created = std::expected<T, CreateFailure>;

class ImageLibrary;  // image_library.h

// How a sandbox's entry process ended.
struct End {
  enum class Kind { exited, signalled, out_of_memory, host_restarted, lost };
  Kind kind = Kind::lost;
  int number = 0;      // exit code or signal
  std::string detail;  // a sentence for people
  // The last part of what the entry process wrote; empty when nobody knows.
  std::string output = {};
  bool output_truncated = false;
};

// Something that others than this server have done, or that happened by itself.
struct News {
  std::string handle;
  // A sentence for people. "": somebody has paused the sandbox or let it go on; is_paused() says which.
  std::string trouble = {};
};

// What separates a sandbox of this runtime from the host.
struct Isolation {
  std::string tier;                       // a name, and what it is made of
  std::vector<std::string> missing = {};  // what this host cannot do, a sentence each
};

// What adopt() found.
struct Adoption {
  enum class Kind {
    adopted,
    ended,    // its processes are gone: nothing less is an end
    unknown,  // it could not be found out now; asking again may help
  };
  Kind kind = Kind::unknown;
  bool paused = false;  // adopted
  End end = {};         // ended
  Error error = {};     // unknown
};

// What an engine says of a sandbox that another server has made, for a row of it.
struct Inherited {
  std::string id, image;
  std::string platform = {};
  std::vector<std::string> entrypoint = {};
  std::map<std::string, std::string> metadata = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  WallTime created = {};
  std::optional<WallTime> expires = {};
};

// What there is of a sandbox about which the server knows nothing.
struct Recalled {
  std::string record;                       // as it was given; empty when there is none
  std::string identity;                     // empty when nothing of it runs
  std::optional<Inherited> inherited = {};  // of one that is taken over now; it may have ended
};

// What the entry process wrote, its last part.
struct Output {
  std::string text;
  bool truncated = false;
};

// A sandbox that runs and waits for whoever takes it.
struct Warm {
  std::string identity;
  std::string shape;  // what the runtime has to know about it after a restart; opaque
};

struct KeptSnapshot {
  std::string image_id;  // see ImageRequest
  std::vector<sandbox::SnapshotLayer> layers;
  uint64_t bytes = 0, entries = 0;  // that it added
  std::string record;               // of the sandbox; see Claim
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  // As requests and rows name it.
  virtual std::string_view name() const = 0;
  virtual const Capabilities& capabilities() const = 0;
  virtual Isolation isolation() const { return {}; }
  // Ends what this object does; sandboxes are not touched.
  virtual Task<> close() { co_return; }

  // Whether a sandbox could be made now; if not, why.
  virtual Task<Result<void>> health() { co_return Result<void>(); }

  // The first half of a creation. Comes before anything is stored: finds out whether it can be done, brings
  // the image here, and leaves nothing that somebody would have to remove. obstacle() was asked before.
  virtual Task<Created<PreparedPtr>> prepare(SandboxSpec spec) = 0;
  // What a prepare() for this handle is waiting for, as part of a sentence; "" when nobody knows.
  virtual std::string preparing(const std::string& handle) const;
  // The images that it has; null when nobody can look after them through this server.
  virtual ImageLibrary* images() { return nullptr; }
  // The second half. Returns the identity when the entry process runs and execd answers. On failure nothing
  // is left behind, unless the engine is away: the caller destroys it, until that succeeds.
  virtual Task<Created<std::string>> start(PreparedPtr prepared, Claim claim) = 0;
  // The second half in two steps. After warm() everything runs but the entry process; wait() ends when
  // that is no longer so, destroy(), list() and recall() know it, nothing else does. claim() gives it what it
  // is for; then it is a sandbox like any other. What warm() leaves behind on failure: see start(). After a
  // claim() that fails the caller destroys it; Code::not_found says that it did not wait any more.
  virtual Task<Created<Warm>> warm(PreparedPtr prepared, std::string record);
  virtual Task<Created<void>> claim(std::string handle, Claim claim, std::optional<NetworkPolicy> network);
  // adopt() for one of those. Kind::ended also for one whose entry process was started.
  virtual Task<Adoption> adopt_warm(std::string handle, Warm warm);
  // Ends all processes and removes all files. Idempotent: an unknown one is success.
  virtual Task<Result<void>> destroy(std::string handle) = 0;
  // Handles of everything of this owner, whatever its condition.
  virtual Task<Result<std::vector<std::string>>> list() = 0;
  // Takes a sandbox over from an earlier server. Whether it is paused is what the host says, not what was
  // last recorded.
  virtual Task<Adoption> adopt(std::string handle, std::string identity) = 0;
  // Until the entry process has ended. The end is told again, to this server or the next, until settle(). An
  // error says that nobody knows any more what the sandbox does: adopt() finds out.
  virtual Task<Result<End>> wait(std::string handle) = 0;
  // The end is stored and need not be told again: no process of the sandbox runs afterwards, its files stay
  // until destroy(). Fine for one that is unknown.
  virtual Task<Result<void>> settle(std::string handle) = 0;
  // Stops every process; returns when none runs any more. Both are idempotent. Code::not_found when the
  // sandbox has no processes, Code::timeout when one does not stop: then none is stopped.
  virtual Task<Result<void>> pause(std::string handle) = 0;
  // False: it was not paused.
  virtual Task<Result<bool>> resume(std::string handle) = 0;
  // Who hears of it when others than this server pause and resume sandboxes, from now on; an empty one:
  // nobody any more. A runtime that nobody else can reach has no news.
  virtual void on_news(std::function<void(News)>) {}
  // What it is now, whoever did that. Code::not_found when the sandbox has no processes.
  virtual Task<Result<bool>> is_paused(std::string handle);
  // The record of a sandbox, for a server that has lost its row.
  virtual Task<Result<Recalled>> recall(std::string handle) = 0;
  // For one that is inherited: from here on it is this server's.
  virtual Task<Result<void>> keep_record(std::string handle, std::string record) = 0;
  // A new connection to a port inside; kExecdPort is execd's API. Code::unavailable when nothing listens,
  // Code::not_found when there is no way to the sandbox now, whether it runs or not.
  virtual Task<Result<io::Stream>> connect(std::string handle, uint16_t port) = 0;
  // What a running sandbox's entry process wrote.
  virtual Task<Result<Output>> logs(std::string handle) = 0;
  // Snapshots, by ids that the caller chooses. capture() copies what the sandbox has changed; it stands still
  // meanwhile and goes on afterwards, unless it is paused. keep() makes that last, and tells what it is:
  // again for one that is kept, Code::not_found for one that was not captured, Code::wrong_state while either
  // is under way. Sandboxes that were made from a snapshot keep what they need of it when it is dropped.
  virtual Task<Result<void>> capture(std::string handle, std::string snapshot);
  virtual Task<Result<KeptSnapshot>> keep(std::string snapshot);
  // The same for one that sandboxes are made of at once and that is dropped then: it need not outlast this
  // boot of the host, so that a runtime that can leaves the disk alone.
  virtual Task<Result<KeptSnapshot>> keep_for_now(std::string snapshot) { return keep(std::move(snapshot)); }
  virtual Task<Result<void>> drop(std::string snapshot);
  virtual Task<Result<std::vector<std::string>>> list_snapshots();
  // What the sandbox has changed, as far as can be told while it goes on.
  virtual Task<Result<std::vector<sandbox::FileChange>>> changes(std::string handle);
  // Volumes that have names, of one owner, in order.
  virtual Task<Result<std::vector<NamedVolume>>> list_volumes(std::string owner);
  // Code::not_found, Code::wrong_state while a sandbox has it.
  virtual Task<Result<void>> remove_volume(std::string owner, std::string name);
  // What it may reach now; nothing when it was made without a policy and got none.
  virtual Task<Result<std::optional<NetworkPolicy>>> network_of(std::string handle);
  // What it counts, in the text format of Prometheus; empty when that is nothing.
  virtual Task<Result<std::string>> metrics() { co_return std::string(); }
  // What the egress of a sandbox wants to see (OPENSANDBOX-EGRESS-AUTH) of whoever is connected to it; ""
  // when only this server can be.
  virtual std::string egress_token(const std::string&) const { return ""; }
  // For one that cannot be connected to: where execd relays HTTP to it, a path that goes before the
  // request's. "": it does not.
  virtual std::string detour(const std::string& handle, uint16_t port) const;
  // Where clients reach a port without this server; nothing: only through its proxy.
  virtual std::optional<std::string> endpoint(const std::string& handle, uint16_t port) const;
};

// Both halves.
Task<Created<std::string>> create(Runtime& runtime, SandboxSpec spec, Claim claim);

// The logs of a sandbox with an execd of ours in it, which keeps them. `pumps`: see io::to_socket().
Task<Result<Output>> execd_logs(Runtime& runtime, std::string handle, io::TaskGroup& pumps);

}  // namespace osb::runtime
