#pragma once

// What the runtime keeps about one container: no more than a server that is started again finds out.

#include "docker/docker_runtime.h"

namespace osb::docker {

struct DockerRuntime::Sandbox {
  Sandbox(std::string handle_, std::string container_, const io::Executor& executor)
      : handle(std::move(handle_)), container(std::move(container_)), reachable(executor), over(executor) {
    reachable.set();
  }
  std::string handle;
  std::string container;                              // the engine's id of it
  std::optional<runtime::ControlConnection> control;  // none: not connected yet, or no longer
  std::optional<runtime::ControlState> heard;         // said while it was started
  std::vector<Fd> sockets;                            // unconnected, of the container's network
  io::Event reachable;                                // not set: it was paused when it was taken over
  io::Event over;                                     // `end` says how, or why that is not known
  Result<End> end = fail(Code::cancelled, "the server ends");
  bool removed = false;
};

// What the engine says about the end of a container of which execd said nothing.
End end_of(const Container& container);

}  // namespace osb::docker
