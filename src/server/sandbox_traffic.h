#pragma once

// How many requests and streams go through the proxy to each sandbox at this moment. One sandbox, whoever
// uses it, cannot take all of the server's connections. Bounded by those connections; belongs to one loop.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace osb::server {

class SandboxTraffic {
  using Counts = std::unordered_map<std::string, int64_t>;

 public:
  // A request or stream under way, until this is destroyed.
  class Place {
   public:
    Place(Counts& counts, Counts::value_type& entry) : counts_(&counts), entry_(&entry) { ++entry.second; }
    Place(Place&& other) noexcept
        : counts_(std::exchange(other.counts_, nullptr)), entry_(std::exchange(other.entry_, nullptr)) {}
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    Counts* counts_;
    Counts::value_type* entry_;  // stays where it is, whatever else comes and goes
  };

  explicit SandboxTraffic(int64_t most) : most_(most) {}  // for each sandbox; 0 means no limit
  SandboxTraffic(const SandboxTraffic&) = delete;

  // Nothing when the sandbox has as many as it may.
  std::optional<Place> enter(const std::string& id);
  int64_t most() const { return most_; }
  size_t sandboxes() const { return counts_.size(); }  // that have any

 private:
  int64_t most_;
  Counts counts_;
};

}  // namespace osb::server
