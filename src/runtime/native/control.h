#pragma once

// execd's control connection: what its entry process is doing. Frames are a 4-byte big-endian length and
// JSON.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/frame.h"
#include "io/socket.h"

namespace osb::runtime {

using io::Task;

struct ControlState {
  enum class Kind { waiting, running, failed, ended };
  Kind kind = Kind::waiting;
  int protocol = 1;                   // what this execd speaks; those that do not say so speak 1
  int exit_code = 0;                  // ended
  int signal = 0;                     // ended by a signal when not 0
  std::optional<bool> out_of_memory;  // ended; nothing when execd cannot tell
  bool stopped = false;               // ended, because somebody outside has stopped the sandbox
  int sys_errno = 0;                  // failed
  std::string path;                   // failed: what could not be executed
  std::string message;
  std::string output;  // ended: the last part of what it wrote
  bool output_truncated = false;
};

struct EntryProcess {
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory = "/";
  uint32_t uid = 0, gid = 0;
  // In an engine's container: directory, user and the variables of the image are execd's own.
  bool inherits = false;
  // What the sandbox may use, for the numbers it shows inside; its control groups cannot be seen from there.
  std::optional<int64_t> cpu_millis, memory_bytes;
};

Result<ControlState> parse_control_state(std::string_view json);
std::string encode_entry(const EntryProcess& entry);

class ControlConnection {
 public:
  static Task<Result<ControlConnection>> open(std::string socket_path);
  explicit ControlConnection(io::Socket socket);

  Task<Result<ControlState>> next();  // Code::unavailable when execd is gone
  bool has_more();                    // next() would return at once
  Task<Result<void>> hold();          // execd waits for start() as long as it takes
  Task<Result<void>> start(EntryProcess entry);
  Task<Result<void>> acknowledge();  // lets execd end

 private:
  Task<Result<void>> send(std::string json);
  io::Socket socket_;
  FrameReader frames_;
};

}  // namespace osb::runtime
