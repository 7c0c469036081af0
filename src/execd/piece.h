#pragma once

// A buffer of file content on its way between the loop and a worker. Two of them take turns, so that one is
// filled while the other is emptied, and no memory is asked for in between. Not a string: that would clear
// what is overwritten at once.

#include <cstddef>
#include <memory>
#include <string_view>

namespace osb::execd {

struct Piece {
  static constexpr size_t kCapacity = 1 << 20;
  std::unique_ptr<char[]> data = std::make_unique_for_overwrite<char[]>(kCapacity);
  size_t size = 0;
  std::string_view view() const { return {data.get(), size}; }
};

}  // namespace osb::execd
