#pragma once

// What a runtime is: something that makes isolated Linux sandboxes with an execd in each, and lets the server
// reach them. Values in, typed results out; no route knows which runtime runs.
//
// A sandbox outlives the server. `identity` is what a runtime needs to recognise a sandbox again after a
// restart (an opaque text for the store): recovery calls list(), then adopt() for each stored sandbox and
// recall() for everything else. A runtime knows sandboxes by their handles: whatever it names after them may
// be seen by others on the host, and the id must not. All calls belong to the server's loop.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/socket.h"

namespace osb::runtime {

using io::Task;

inline constexpr uint16_t kExecdPort = 44772;
inline constexpr uint16_t kEgressPort = 18080;
inline constexpr size_t kMaxRecord = 64 * 1024;

struct Limits {
  std::optional<int64_t> cpu_millis = {};  // 1000 = one core
  std::optional<int64_t> memory_bytes = {};
  std::optional<int64_t> pids = {};        // absent: the runtime's default
  std::optional<int64_t> disk_bytes = {};  // everything that is written, on all layers together
  std::optional<int64_t> io_read_bytes = {}, io_write_bytes = {};  // per second
  std::optional<int64_t> open_files = {};                          // per process
};

struct SandboxSpec {
  std::string id;      // what its owner calls it; for the environment inside, nothing else
  std::string handle;  // what it is called on the host: a UUID that says nothing about the id
  std::string image;   // as the client wrote it
  Limits limits;
  std::vector<std::string> entrypoint;
  std::vector<std::pair<std::string, std::string>> env;
  bool read_only_root = false;  // nothing but /tmp, /run and devices can be written
  std::string record;           // kept beside the sandbox for recall(); at most kMaxRecord bytes
};

struct CreateFailure {
  enum class Kind {
    image_not_found,
    bad_entrypoint,  // missing, not executable, wrong architecture
    entry_ended,     // it was started, and has failed before anybody could be told
    bad_limit,       // cannot be enforced here
    overloaded,      // no capacity now; nothing was started
    step_failed,     // the error says which step of the set-up, and why
  };
  Kind kind = Kind::step_failed;
  Error error;
};

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

// What there is of a sandbox about which the server knows nothing.
struct Recalled {
  std::string record;    // as it was given; empty when there is none
  std::string identity;  // empty when nothing of it runs
};

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual std::string_view name() const = 0;

  virtual Isolation isolation() const { return {}; }

  // Whether a sandbox could be made now; if not, why.
  virtual Task<Result<void>> health() { co_return Result<void>(); }

  // Can this be created here? Checked before anything is stored; no side effects.
  virtual std::expected<void, CreateFailure> check(const SandboxSpec& spec) const = 0;
  // Returns when the entry process runs and execd answers. On failure nothing is left behind.
  virtual Task<std::expected<std::string, CreateFailure>> create(SandboxSpec spec) = 0;
  // Ends all processes and removes all files. Idempotent: an unknown one is success.
  virtual Task<Result<void>> destroy(std::string handle) = 0;
  // Handles of everything of ours on this host, whatever its condition.
  virtual Task<Result<std::vector<std::string>>> list() = 0;
  // Takes a sandbox over from an earlier server. Whether it is paused is what the host says, not what was
  // last recorded.
  virtual Task<Adoption> adopt(std::string handle, std::string identity) = 0;
  // Until the entry process has ended. The end is told again, to this server or the next, until settle().
  virtual Task<End> wait(std::string handle) = 0;
  // The end is stored and need not be told again: no process of the sandbox runs afterwards, its files stay
  // until destroy(). Fine for one that is unknown.
  virtual Task<Result<void>> settle(std::string handle) = 0;
  // Stops every process; returns when none runs any more. Both are idempotent. Code::not_found when the
  // sandbox has no processes, Code::timeout when one does not stop: then none is stopped.
  virtual Task<Result<void>> pause(std::string handle) = 0;
  // False: it was not paused.
  virtual Task<Result<bool>> resume(std::string handle) = 0;
  // The record of a sandbox, for a server that has lost its row.
  virtual Task<Result<Recalled>> recall(std::string handle) = 0;
  virtual Task<Result<void>> keep_record(std::string handle, std::string record) = 0;
  // A new connection to a port inside; kExecdPort is execd's API. Code::unavailable when nothing listens,
  // Code::not_found when there is no way to the sandbox now, whether it runs or not.
  virtual Task<Result<io::Socket>> connect(std::string handle, uint16_t port) = 0;
};

}  // namespace osb::runtime
