#include "sys/spent_groups.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sys/directory.h"

namespace osb::sys {
namespace {

constexpr size_t kMost = 64;

int remove_group(const std::string& group) {
  // Few have one; without it this fails, and nothing depends on that.
  ::rmdir((group + "/" + kWork).c_str());
  return ::rmdir(group.c_str());
}

}  // namespace

void SpentGroups::sweep(const std::set<std::string>& alive) {
  for (const auto* parents : {&always_, &sometimes_}) {
    for (const std::string& parent : *parents) {
      auto names = directories_in(parent).value_or(std::vector<std::string>());
      for (const std::string& name : names) {
        if (!alive.contains(name)) remove_group(parent + "/" + name);
      }
    }
  }
}

void SpentGroups::add(std::string id, bool usable) {
  if (always_.empty() && sometimes_.empty()) return;
  spent_.push_back({std::move(id), usable});
  if (spent_.size() <= kMost) return;
  auto victim = std::find_if(spent_.begin(), spent_.end(), [](const Spent& spent) { return !spent.usable; });
  if (victim == spent_.end()) victim = spent_.begin();
  Spent oldest = std::move(*victim);
  spent_.erase(victim);
  if (!remove(oldest.id)) spent_.push_back({std::move(oldest.id), false});
}

bool SpentGroups::give_to(const std::string& id) {
  auto found = std::find_if(spent_.rbegin(), spent_.rend(), [](const Spent& spent) { return spent.usable; });
  if (found == spent_.rend()) return false;
  std::string old = std::move(found->id);
  spent_.erase(std::next(found).base());
  for (const std::string& parent : always_) {
    std::string from = parent + "/" + old, to = parent + "/" + id;
    if (::rename(from.c_str(), to.c_str()) == 0) continue;
    for (const std::string& name : {old, id}) {
      if (!remove(name)) spent_.push_back({name, false});
    }
    return false;
  }
  return true;
}

bool SpentGroups::drop() {
  auto all = std::exchange(spent_, {});
  for (Spent& spent : all) {
    if (!remove(spent.id)) spent_.push_back({std::move(spent.id), false});
  }
  return spent_.empty();
}

bool SpentGroups::remove(const std::string& id) const {
  bool gone = true;
  for (const auto* parents : {&always_, &sometimes_}) {
    for (const std::string& parent : *parents) gone &= remove_group(parent + "/" + id) == 0 || errno != EBUSY;
  }
  return gone;
}

}  // namespace osb::sys
