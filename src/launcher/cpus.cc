#include "launcher/cpus.h"

#include <algorithm>
#include <climits>

namespace osb::launcher {
namespace {

std::vector<int> affinity_of(pid_t pid) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(pid, sizeof set, &set) < 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

Cpus Cpus::of_this_process() { return Cpus(affinity_of(0)); }

int Cpus::count_for(int64_t cpu_millis) const {
  int64_t rounded_up = std::max<int64_t>(1, (cpu_millis + 999) / 1000);
  // Nothing is known of the processors of a host that has more than fit into a cpu_set_t.
  if (usable_.empty()) return static_cast<int>(std::min<int64_t>(rounded_up, INT_MAX));
  return static_cast<int>(std::min(rounded_up, static_cast<int64_t>(usable_.size())));
}

std::vector<int> Cpus::take(const std::string& id, int count) {
  if (count <= 0 || static_cast<size_t>(count) >= usable_.size()) return {};
  std::vector<int> order = usable_;
  std::sort(order.begin(), order.end(),
            [this](int a, int b) { return std::pair(users_[a], a) < std::pair(users_[b], b); });
  order.resize(static_cast<size_t>(count));
  std::sort(order.begin(), order.end());
  for (int cpu : order) ++users_[cpu];
  return taken_[id] = std::move(order);
}

void Cpus::adopt(const std::string& id, pid_t first_process) {
  std::vector<int> cpus = affinity_of(first_process);
  if (cpus.empty() || cpus.size() >= usable_.size()) return;
  for (int cpu : cpus) ++users_[cpu];
  taken_[id] = std::move(cpus);
}

void Cpus::release(const std::string& id) {
  auto found = taken_.find(id);
  if (found == taken_.end()) return;
  for (int cpu : found->second) --users_[cpu];
  taken_.erase(found);
}

cpu_set_t to_set(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) CPU_SET(cpu, &set);
  return set;
}

}  // namespace osb::launcher
