#pragma once

// What the native runtime keeps about one sandbox: that is to be started, that waits for a claim, that runs.

#include "image/image.h"
#include "runtime/native/native_runtime.h"

namespace osb::runtime {

inline std::unexpected<CreateFailure> failed(CreateFailure::Kind kind, Error error) {
  return std::unexpected(CreateFailure{kind, std::move(error)});
}

// What it means that the launcher did not start a sandbox with these mounts.
CreateFailure::Kind kind_of_start(const std::vector<Mount>& mounts, const Error& error);

bool is_gone(const Fd& pidfd);            // the process has ended
bool is_last(const ControlState& state);  // nothing is said after it

struct NativePrepared : Prepared {
  launcher::Plan plan;                   // all but the record
  Limits limits;                         // as asked for; the entry process is shown these
  std::optional<NetworkPolicy> network;  // of its own
  image::ImageConfig config;
  std::string owner;
  std::vector<Mount> mounts;
};

// What the entry process will be started with, of a sandbox that has none yet.
struct Waiting {
  Limits limits;  // processor and memory, which it is shown
  image::ImageConfig config;
};
// As the store keeps it. Code::corrupt for anything else.
std::string to_shape(const Waiting& waiting);
Result<Waiting> from_shape(std::string_view shape);

struct NativeRuntime::Sandbox {
  Sandbox(std::string handle_, const io::Executor& executor, Fd pidfd_)
      : handle(std::move(handle_)),
        pidfd(std::move(pidfd_)),
        reachable(executor),
        ended(executor),
        claimed(executor) {
    reachable.set();
  }
  std::string handle;
  Fd pidfd;
  std::optional<ControlConnection> control;  // none: not connected yet, or no longer
  std::optional<ControlState> heard;         // said while it was started
  std::vector<Fd> sockets;                   // unconnected, inside the sandbox's network namespace
  io::Event reachable;                       // not set: it was frozen when it was taken over, and still is
  io::Event ended;
  std::unique_ptr<Waiting> waiting;  // nobody has claimed it yet
  io::Event claimed;
  End end;
  int64_t ooms_before = 0;  // processes killed for memory while the entry process ran on
  bool removed = false;
  std::optional<std::string> unkept;  // its record, as long as the launcher has not confirmed it
};

struct NativeRuntime::Attaching {
  Attaching(const io::Executor& executor, NetworkPolicy policy_)
      : policy(std::move(policy_)), done(executor) {}
  NetworkPolicy policy;
  io::Event done;
  Result<void> result = fail(Code::cancelled, "the server ends");
};

// The record of a claim, on its way to the launcher.
struct NativeRuntime::Recording {
  explicit Recording(const io::Executor& executor) : done(executor) {}
  io::Event done;
  Result<void> result = fail(Code::cancelled, "the server ends");
};

}  // namespace osb::runtime
