#include "execd/process_tree.h"

#include <signal.h>

#include <map>

namespace osb::execd {
namespace {

constexpr int kMostRounds = 40;
constexpr auto kFirstPause = std::chrono::milliseconds(1), kLongestPause = std::chrono::milliseconds(50);

std::vector<ListedProcess> all_processes() {
  std::vector<ListedProcess> list;
  for_each_process([&](pid_t pid, const ProcStat& stat) { list.push_back({pid, stat}); });
  return list;
}

}  // namespace

std::set<pid_t> descendants(const std::vector<ListedProcess>& processes, pid_t root) {
  std::multimap<pid_t, const ListedProcess*> children;
  for (const ListedProcess& process : processes) children.emplace(process.stat.parent, &process);
  std::set<pid_t> found;
  std::vector<pid_t> parents = {root};
  while (!parents.empty()) {
    auto [first, last] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto it = first; it != last; ++it) {
      const ListedProcess& process = *it->second;
      if (process.pid == root || process.stat.state == 'Z' || process.stat.state == 'X') continue;
      if (found.insert(process.pid).second) parents.push_back(process.pid);
    }
  }
  return found;
}

io::Task<> end_tree(std::function<pid_t()> root) {
  auto pause = kFirstPause;
  if (root() > 0) ::kill(root(), SIGSTOP);
  for (int round = 0; round < kMostRounds && root() > 0; ++round) {
    std::set<pid_t> below = descendants(all_processes(), root());
    if (below.empty()) break;
    for (pid_t pid : below) ::kill(pid, SIGKILL);
    co_await io::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
  if (root() > 0) ::kill(-root(), SIGKILL);
}

}  // namespace osb::execd
