#pragma once

// What an engine sends of a program that it runs in a container: frames with a head of eight bytes, the
// number of the stream and the length. Here the program is `execd --join` (execd/join.h): its standard output
// is a connection, and one line on standard error, a number, says how long the connection is in all. The two
// overtake each other.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::docker {

class ExecFrames {
 public:
  // What has come. Only when take() had nothing: so no more is kept than one read brings.
  void feed(std::string_view bytes);
  // Bytes of the connection that are here; 0 for none. Code::corrupt, and nothing more can be taken.
  Result<size_t> take(std::span<char> into);
  // The other side has ended its sending, and all of it was taken.
  bool ended() const { return total_ && taken_ == *total_; }

 private:
  Result<bool> read_head();
  Result<void> hear(std::string_view words);

  std::string buffer_;
  size_t at_ = 0;       // where the unread part begins
  uint32_t left_ = 0;   // of the frame that is being read
  bool aside_ = false;  // which is not of the connection
  std::string words_;   // of standard error
  uint64_t taken_ = 0;
  std::optional<uint64_t> total_;
};

}  // namespace osb::docker
