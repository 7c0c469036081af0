#include "server/uses.h"

#include <algorithm>

namespace osb::server {
namespace {

// How often those are looked at that wait for their time: a second is the shortest that can be asked for.
constexpr io::Duration kLookAtMost = std::chrono::seconds(1);
constexpr io::Duration kLookAtLeast = std::chrono::milliseconds(20);

}  // namespace

void Uses::Entry::touch() {
  last = std::chrono::steady_clock::now();
  taken = false;
  changed->set();
}

Uses::Use::Use(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {
  if (entry_) ++entry_->in_use;
}

Uses::Use& Uses::Use::operator=(Use&& other) noexcept {
  if (this != &other) {
    end();
    entry_ = std::move(other.entry_);
  }
  return *this;
}

void Uses::Use::end() {
  if (!entry_) return;
  if (--entry_->in_use == 0) entry_->touch();
  entry_.reset();
}

void Uses::watch(const std::string& id, std::chrono::seconds after, Now now) {
  auto& entry = entries_[id];
  entry = std::make_shared<Entry>();
  entry->after = after;
  entry->changed = changed_;
  entry->asleep = now == Now::asleep;
  entry->touch();
}

Uses::Use Uses::begin(const std::string& id) {
  auto found = entries_.find(id);
  return Use(found == entries_.end() ? nullptr : found->second);
}

void Uses::touch(const std::string& id) {
  if (auto found = entries_.find(id); found != entries_.end()) found->second->touch();
}

bool Uses::is_asleep(const std::string& id) const {
  auto found = entries_.find(id);
  return found != entries_.end() && found->second->asleep;
}

void Uses::set_asleep(const std::string& id, Now now) {
  auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second->asleep = now == Now::asleep;
  if (now == Now::awake) found->second->touch();
}

bool Uses::is_idle(const std::string& id, Time now) const {
  auto found = entries_.find(id);
  return found != entries_.end() && found->second->is_idle(now);
}

std::vector<std::string> Uses::take_idle(Time now) {
  std::vector<std::string> out;
  for (auto& [id, entry] : entries_) {
    if (entry->taken || !entry->is_idle(now)) continue;
    entry->taken = true;
    out.push_back(id);
  }
  return out;
}

io::Task<> Uses::wait() {
  Time now = std::chrono::steady_clock::now();
  std::optional<Time> next;
  for (const auto& [id, entry] : entries_) {
    if (entry->taken || entry->asleep || entry->in_use > 0) continue;
    Time due = entry->last + entry->after;
    next = next ? std::min(*next, due) : due;
  }
  if (next) co_return co_await io::sleep_for(std::clamp(*next - now, kLookAtLeast, kLookAtMost));
  // Whatever changes from here on says so.
  changed_->reset();
  co_await changed_->wait();
}

}  // namespace osb::server
