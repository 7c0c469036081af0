#pragma once

// What a runtime is: something that makes isolated Linux sandboxes with an execd in each, and lets the server
// reach them. Values in, typed results out; no route knows which runtime runs.
//
// A sandbox outlives the server. `identity` is what a runtime needs to recognise a sandbox again after a
// restart (an opaque text for the store): recovery calls list(), then adopt() for each stored sandbox and
// destroy() for everything else. All calls belong to the server's loop.

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

struct Limits {
  std::optional<int64_t> cpu_millis = {};  // 1000 = one core
  std::optional<int64_t> memory_bytes = {};
  std::optional<int64_t> pids = {};        // absent: the runtime's default
  std::optional<int64_t> disk_bytes = {};  // everything that is written, on all layers together
  std::optional<int64_t> io_read_bytes = {}, io_write_bytes = {};  // per second
  std::optional<int64_t> open_files = {};                          // per process
};

struct SandboxSpec {
  std::string id;     // UUID
  std::string image;  // as the client wrote it
  Limits limits;
  std::vector<std::string> entrypoint;
  std::vector<std::pair<std::string, std::string>> env;
  bool read_only_root = false;  // nothing but /tmp, /run and devices can be written
};

struct CreateFailure {
  enum class Kind {
    image_not_found,
    bad_entrypoint,  // missing, not executable, wrong architecture
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

// What adopt() took over.
struct Adopted {
  bool paused = false;
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
  // Ends all processes and removes all files. Idempotent: an unknown id is success.
  virtual Task<Result<void>> destroy(std::string id) = 0;
  // Ids of everything of ours on this host, whatever its condition.
  virtual Task<Result<std::vector<std::string>>> list() = 0;
  // Takes a sandbox over from an earlier server. An End when its processes are gone. Whether it is paused is
  // what the host says, not what was last recorded.
  virtual Task<std::expected<Adopted, End>> adopt(std::string id, std::string identity) = 0;
  // Until the entry process has ended. Afterwards no process of the sandbox runs; its files stay until
  // destroy().
  virtual Task<End> wait(std::string id) = 0;
  // Stops every process; returns when none runs any more. Both are idempotent. Code::not_found when the
  // sandbox has no processes, Code::timeout when one does not stop: then none is stopped.
  virtual Task<Result<void>> pause(std::string id) = 0;
  virtual Task<Result<void>> resume(std::string id) = 0;
  // A new connection to a port inside; kExecdPort is execd's API. Code::not_found for an unknown id,
  // Code::unavailable when nothing listens.
  virtual Task<Result<io::Socket>> connect(std::string id, uint16_t port) = 0;
};

}  // namespace osb::runtime
