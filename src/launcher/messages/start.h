#pragma once

// Making a sandbox.

#include "launcher/messages/body.h"
#include "launcher/plan.h"
#include "launcher/started.h"

namespace osb::launcher {

// Descriptor: a pidfd of the first process.
struct StartAnswer {
  static constexpr std::string_view kName = "the answer to start";
  static constexpr size_t kDescriptors = 1;
  Started first_process;

  void write(ByteWriter& out) const {
    out.number(first_process.pid);
    out.number(first_process.start_ticks);
  }
  void read(ByteReader& in) {
    first_process.pid = in.number<int64_t>();
    first_process.start_ticks = in.number<uint64_t>();
  }
};

// Answered when execd runs, or with the step that failed; then nothing is left behind.
struct StartRequest {
  static constexpr std::string_view kName = "start";
  static constexpr Verb kVerb = Verb::start;
  using Answer = StartAnswer;
  Plan plan;

  void write(ByteWriter& out) const { write_plan(plan, out); }
  void read(ByteReader& in) { plan = read_plan(in); }
};

}  // namespace osb::launcher
