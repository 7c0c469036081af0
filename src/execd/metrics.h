#pragma once

// What the sandbox uses, from its control groups where they can be seen, else from its processes. Nothing
// runs in the background: the share of the CPUs is that since the last question.

#include <chrono>
#include <string>

#include "execd/core.h"
#include "execd/workers.h"
#include "http/router.h"

namespace osb::execd {

struct Usage {
  int cpu_count = 1;
  double cpu_used_usec = 0;  // since some fixed moment
  double memory_total_mib = 0, memory_used_mib = 0;
};
// Limits that the control groups show come before `limits`.
Usage read_usage(const SandboxLimits& limits);

// The share of CPU time between two moments.
class CpuShare {
 public:
  using Clock = std::chrono::steady_clock;
  CpuShare(double used_usec, Clock::time_point now) : used_usec_(used_usec), at_(now) {}
  // Percent of all `cpus`, 0 to 100. Questions in quick succession get the same answer.
  double update(double used_usec, int cpus, Clock::time_point now);

 private:
  double used_usec_;
  Clock::time_point at_;
  double percent_ = 0;
};

class MetricsRoutes {
 public:
  MetricsRoutes(Core& core, Workers& workers);
  void add_to(http::Router& router);

 private:
  io::Task<> get(http::Request& request, http::ResponseWriter& response);
  io::Task<> watch(http::Request& request, http::ResponseWriter& response);
  io::Task<Result<std::string>> sample(CpuShare& share);

  Core& core_;
  Workers& workers_;
  CpuShare share_;
};

}  // namespace osb::execd
