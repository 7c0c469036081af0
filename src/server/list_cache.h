#pragma once

// Pages of the sandbox list as they were last sent, for as long as no row has changed. Whoever watches a
// quiet server polls the same page again and again; on a busy one no page is asked for twice, so that one is
// kept from the second time on. A page is its owner's alone. Bounded; belongs to one loop.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace osb::server {

class ListCache {
 public:
  static constexpr size_t kMaxPages = 8;
  static constexpr size_t kMaxPageBytes = 256 * 1024;
  static constexpr size_t kMaxAsked = 64;

  // Null when the page is not known or rows have changed since (`generation` is the store's).
  const std::string* find(std::string_view owner, std::string_view query, uint64_t generation) const;
  void put(std::string_view owner, std::string_view query, uint64_t generation, const std::string& page);

 private:
  struct Page {
    std::string owner, query, body;
  };
  std::vector<Page> pages_;
  std::vector<size_t> asked_;  // hashes of what was asked for once
  uint64_t generation_ = 0;
  size_t next_ = 0;  // the one to replace when all places are taken
};

}  // namespace osb::server
