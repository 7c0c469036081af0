#pragma once

// Who uses a sandbox now, and which have been used by nobody for so long that they are to be paused. Only of
// sandboxes that asked for it: all others cost a look into a table.
//
// It is kept in memory alone. After a restart nobody uses anything, and the time without a use begins anew.
// Belongs to one loop.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "io/task.h"

namespace osb::server {

class Uses {
  struct Entry;

 public:
  using Time = std::chrono::steady_clock::time_point;

  // A sandbox is in use as long as one of these is held.
  class Use {
   public:
    Use() = default;
    Use(Use&&) noexcept = default;
    Use& operator=(Use&& other) noexcept;
    ~Use() { end(); }

   private:
    friend class Uses;
    explicit Use(std::shared_ptr<Entry> entry);
    void end();
    std::shared_ptr<Entry> entry_;  // null: nobody wants to know
  };

  explicit Uses(io::Executor executor) : changed_(std::make_shared<io::Event>(std::move(executor))) {}

  enum class Now { awake, asleep };
  // From now on: paused after so long without a use.
  void watch(const std::string& id, std::chrono::seconds after, Now now);
  void forget(const std::string& id) { entries_.erase(id); }
  [[nodiscard]] Use begin(const std::string& id);
  // It was not used, but what it was idle for is over: somebody let it go on.
  void touch(const std::string& id);

  // Paused because nobody used it, or about to be: whoever wants to use it has to wake it first.
  bool is_asleep(const std::string& id) const;
  void set_asleep(const std::string& id, Now now);

  // Nobody uses it, and nobody has for as long as it asked for.
  bool is_idle(const std::string& id, Time now) const;
  // All of these, each of them once: again after its next use.
  std::vector<std::string> take_idle(Time now);
  // Until one may be idle.
  io::Task<> wait();

 private:
  struct Entry {
    std::chrono::seconds after{};
    std::shared_ptr<io::Event> changed;
    size_t in_use = 0;
    Time last{};  // the end of the last use
    bool taken = false, asleep = false;
    bool is_idle(Time now) const { return in_use == 0 && !asleep && now - last >= after; }
    void touch();
  };

  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::shared_ptr<io::Event> changed_;  // one may become idle that could not before
};

}  // namespace osb::server
