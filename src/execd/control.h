#pragma once

// The control socket of a native sandbox: whoever connects learns the state of the entry process, now and as
// it changes, and may start it, or say {"hold":true}: it will be started some day, by whoever takes the
// sandbox then. Frames are a 4-byte big-endian length and JSON.

#include "base/fd.h"
#include "execd/entry.h"
#include "io/socket.h"

namespace osb::execd {

class Control {
 public:
  // Without a listener (an empty one) connections come by adopt().
  Control(Core& core, Entry& entry, Fd listener);
  void adopt(io::Socket socket) { connections_.spawn(serve(std::move(socket))); }

  // Serves until execd has nothing more to do: the end was acknowledged (or nobody cared for an hour), the
  // entry process could not be started, or nobody asked for one in time, nor to hold it. The result is the
  // exit code of execd.
  io::Task<int> run();

 private:
  io::Task<> accept();
  io::Task<> serve(io::Socket socket);
  io::Task<> send_states(io::Socket& socket);
  io::Task<> receive(io::Socket& socket);

  Entry& entry_;
  std::optional<io::Acceptor> acceptor_;
  io::TaskGroup connections_;
  io::Event acknowledged_;
  io::Event told_failure_;
  bool held_ = false;
};

}  // namespace osb::execd
