#pragma once

// The framing of one message body, without any input or output of its own: a declared length, chunks, or
// everything until the connection ends. Strict: CRLF exactly, bounded chunk sizes, extensions and trailers.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace osb::http {

class BodyDecoder {
 public:
  static constexpr size_t kMaxExtensionBytes = 8 * 1024;  // of all chunks together
  static constexpr size_t kMaxTrailerBytes = 8 * 1024;

  BodyDecoder() = default;  // no body
  static BodyDecoder with_length(uint64_t length);
  static BodyDecoder chunked();
  static BodyDecoder until_close();

  struct Step {
    size_t consumed = 0, produced = 0;
  };
  // Takes from `in`, puts payload into `out`; stops when either is used up or the body has ended.
  Result<Step> decode(std::string_view in, std::span<char> out);

  bool done() const { return state_ == State::done; }
  // Payload bytes that come next with nothing in between: a reader may take up to this many straight into its
  // own memory and report them with skip().
  uint64_t direct() const { return state_ == State::payload ? left_ : 0; }
  void skip(uint64_t count);
  // The connection ended here: the end of the body, or Code::unavailable because something is missing.
  Result<void> end_of_stream();
  std::optional<uint64_t> declared() const { return declared_; }
  // Payload bytes that are still to come, when that is known.
  std::optional<uint64_t> remaining() const;

 private:
  enum class State : uint8_t { done, payload, size, extension, size_lf, payload_cr, payload_lf, trailer };
  enum class Kind : uint8_t { length, chunked, until_close };

  Result<void> frame(char c);
  Result<void> end_trailer_line();

  State state_ = State::done;
  Kind kind_ = Kind::length;
  uint64_t left_ = 0;
  int digits_ = 0;
  size_t extension_bytes_ = 0;
  size_t trailer_bytes_ = 0;
  std::optional<uint64_t> declared_ = 0;
  std::string trailer_;
};

}  // namespace osb::http
