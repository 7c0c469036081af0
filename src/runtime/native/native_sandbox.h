#pragma once

// What the native runtime keeps about one sandbox.

#include "runtime/native/native_runtime.h"

namespace osb::runtime {

struct NativeRuntime::Sandbox {
  Sandbox(std::string handle_, const io::Executor& executor, Fd pidfd_)
      : handle(std::move(handle_)), pidfd(std::move(pidfd_)), reachable(executor), ended(executor) {
    reachable.set();
  }
  std::string handle;
  Fd pidfd;
  std::optional<ControlConnection> control;  // none: not connected yet, or no longer
  std::optional<ControlState> heard;         // said while it was started
  std::vector<Fd> sockets;                   // unconnected, inside the sandbox's network namespace
  io::Event reachable;                       // not set: it was frozen when it was taken over, and still is
  io::Event ended;
  End end;
  int64_t ooms_before = 0;  // processes killed for memory while the entry process ran on
  bool removed = false;
};

}  // namespace osb::runtime
