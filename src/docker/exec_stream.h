#pragma once

// A connection that an engine carries: what is written goes to a program that it runs in a container, what
// the program writes is read. It has the connection to the engine for itself.

#include <memory>

#include "docker/engine_link.h"
#include "docker/exec_frames.h"
#include "io/stream.h"

namespace osb::docker {

class ExecStream final : public io::ForeignStream {
 public:
  explicit ExecStream(Link link);

  // Code::unavailable: it broke. An end is only what the other side calls one.
  Task<Result<size_t>> read_some(std::span<char> into) override;
  Task<Result<void>> write_all(std::string_view bytes) override;
  void shutdown_send() override;

 private:
  Link link_;
  ExecFrames frames_;
  std::unique_ptr<char[]> piece_;
};

}  // namespace osb::docker
