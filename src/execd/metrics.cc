#include "execd/metrics.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strings.h"
#include "execd/cgroup_usage.h"
#include "execd/proc_stat.h"
#include "execd/reply.h"

namespace osb::execd {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

int allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) < 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

struct HostMemory {
  double total_mib = 0, used_mib = 0;
};

HostMemory host_memory() {
  auto text = read_file("/proc/meminfo", 64 * 1024);
  if (!text) return {};
  auto kib = [&](std::string_view name) -> double {
    for (std::string_view line : split(*text, '\n')) {
      size_t colon = line.find(':');
      if (colon == line.npos || line.substr(0, colon) != name) continue;
      std::string_view value = trim(line.substr(colon + 1));
      return static_cast<double>(parse_number<uint64_t>(value.substr(0, value.find(' '))).value_or(0));
    }
    return 0;
  };
  double total = kib("MemTotal");
  double used = total - kib("MemFree") - kib("Buffers") - kib("Cached") - kib("SReclaimable");
  return {total / 1024, std::max(used, 0.0) / 1024};
}

// The processes that are there, and what this process has reaped: all of the sandbox when this is its PID 1.
struct ProcessSums {
  double cpu_usec = 0, memory_bytes = 0;
};

ProcessSums sum_processes() {
  ProcessSums sums;
  double usec_per_tick = 1e6 / static_cast<double>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  for_each_process([&](pid_t pid, const ProcStat& stat) {
    sums.cpu_usec += static_cast<double>(stat.cpu_ticks) * usec_per_tick;
    auto statm = read_file("/proc/" + std::to_string(pid) + "/statm", 256);
    auto fields = statm ? split(*statm, ' ') : std::vector<std::string_view>();
    if (fields.size() < 3) return;
    double resident = static_cast<double>(parse_number<uint64_t>(fields[1]).value_or(0));
    double shared = static_cast<double>(parse_number<uint64_t>(fields[2]).value_or(0));
    sums.memory_bytes += std::max(resident - shared, 0.0) * page;
  });
  rusage reaped{};
  ::getrusage(RUSAGE_CHILDREN, &reaped);
  sums.cpu_usec += static_cast<double>(reaped.ru_utime.tv_sec + reaped.ru_stime.tv_sec) * 1e6 +
                   static_cast<double>(reaped.ru_utime.tv_usec + reaped.ru_stime.tv_usec);
  return sums;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

}  // namespace

Usage read_usage(const SandboxLimits& limits) {
  CgroupUsage groups =
      read_cgroup_usage("/sys/fs/cgroup", read_file("/proc/self/cgroup", 64 * 1024).value_or(""));
  if (!groups.cpu_limit && limits.cpu_millis)
    groups.cpu_limit = static_cast<double>(*limits.cpu_millis) / 1000;
  if (!groups.memory_limit_bytes && limits.memory_bytes)
    groups.memory_limit_bytes = static_cast<uint64_t>(*limits.memory_bytes);
  HostMemory host = host_memory();
  ProcessSums processes;
  if (!groups.cpu_used_usec || !groups.memory_used_bytes) processes = sum_processes();
  Usage usage;
  usage.cpu_count = allowed_cpus();
  if (groups.cpu_limit)
    usage.cpu_count = std::clamp(static_cast<int>(std::ceil(*groups.cpu_limit)), 1, usage.cpu_count);
  usage.cpu_used_usec =
      groups.cpu_used_usec ? static_cast<double>(*groups.cpu_used_usec) : processes.cpu_usec;
  usage.memory_total_mib = host.total_mib;
  if (groups.memory_limit_bytes) {
    usage.memory_total_mib = std::min(host.total_mib, static_cast<double>(*groups.memory_limit_bytes) / kMib);
  }
  double used =
      groups.memory_used_bytes ? static_cast<double>(*groups.memory_used_bytes) : processes.memory_bytes;
  usage.memory_used_mib = std::min(used / kMib, usage.memory_total_mib);
  return usage;
}

double CpuShare::update(double used_usec, int cpus, Clock::time_point now) {
  constexpr auto kShortest = milliseconds(50);
  if (now - at_ < kShortest) return percent_;
  double passed = std::chrono::duration<double, std::micro>(now - at_).count();
  percent_ = std::clamp((used_usec - used_usec_) / passed / std::max(cpus, 1) * 100.0, 0.0, 100.0);
  used_usec_ = used_usec;
  at_ = now;
  return percent_;
}

MetricsRoutes::MetricsRoutes(Core& core, Workers& workers)
    : core_(core), workers_(workers), share_(0, CpuShare::Clock::now()) {}

void MetricsRoutes::add_to(http::Router& router) {
  using http::Request;
  using http::ResponseWriter;
  router.add("GET", "/metrics", [this](Request& q, ResponseWriter& r) { return get(q, r); });
  router.add("GET", "/metrics/watch", [this](Request& q, ResponseWriter& r) { return watch(q, r); });
}

io::Task<Result<std::string>> MetricsRoutes::sample(CpuShare& share) {
  Usage usage = CO_TRY(co_await workers_.run(
      std::nullopt, [limits = core_.limits]() -> Result<Usage> { return read_usage(limits); }));
  double percent = share.update(usage.cpu_used_usec, usage.cpu_count, CpuShare::Clock::now());
  co_return "{\"cpu_count\":" + std::to_string(usage.cpu_count) + ",\"cpu_used_pct\":" + number(percent) +
      ",\"mem_total_mib\":" + number(usage.memory_total_mib) +
      ",\"mem_used_mib\":" + number(usage.memory_used_mib) + ",\"timestamp\":" + std::to_string(epoch_ms()) +
      "}";
}

io::Task<> MetricsRoutes::get(http::Request&, http::ResponseWriter& response) {
  auto text = co_await sample(share_);
  if (!text) co_return co_await reply_error(response, {500, codes::kRuntimeError, text.error().message});
  co_await reply_json(response, std::move(*text));
}

io::Task<> MetricsRoutes::watch(http::Request&, http::ResponseWriter& response) {
  http::Headers headers{
      {"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  if (!co_await response.start(200, std::move(headers), std::nullopt)) co_return;
  CpuShare share = share_;
  while (true) {
    auto text = co_await sample(share);
    if (!text) text = "{\"error\":\"the usage cannot be read\"}";
    if (!co_await response.write(*text + "\n\n")) co_return;
    co_await io::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace osb::execd
