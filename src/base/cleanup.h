#pragma once

// Undo steps of a multi-step creation. Each step that succeeded pushes its undo; unless release() is called,
// the destructor runs them in reverse order.

#include <functional>
#include <utility>
#include <vector>

namespace osb {

class Cleanup {
 public:
  Cleanup() = default;
  Cleanup(const Cleanup&) = delete;
  Cleanup& operator=(const Cleanup&) = delete;
  ~Cleanup() { run(); }

  void push(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  void release() { undo_.clear(); }
  void run() {
    while (!undo_.empty()) {
      auto undo = std::move(undo_.back());
      undo_.pop_back();
      undo();
    }
  }

 private:
  std::vector<std::function<void()>> undo_;
};

}  // namespace osb
