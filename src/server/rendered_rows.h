#pragma once

// Sandboxes as lists show them, kept for the next page: between two pages most rows are the same. A row that
// was read never changes (SandboxPtr), one that has changed is another object; so what was printed of it
// stays right for as long as the object lives, and it lives as long as it is kept here. Bounded; belongs to
// one loop.

#include <string>
#include <unordered_map>

#include "sandbox/sandbox.h"

namespace osb::server {

class RenderedRows {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;  // then all are forgotten, and printed again when asked for

  // Valid until the next call. `standard` is of the server: always the same.
  const std::string& of(const sandbox::SandboxPtr& row, std::string_view standard = "");
  size_t size() const { return rows_.size(); }

 private:
  struct Row {
    sandbox::SandboxPtr row;  // keeps the address from being another one's
    std::string text;
  };
  std::unordered_map<const sandbox::Sandbox*, Row> rows_;
  size_t bytes_ = 0;
};

}  // namespace osb::server
