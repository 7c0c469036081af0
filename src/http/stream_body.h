#pragma once

// The body of the message that a Wire currently receives, as a BodyReader.

#include "http/body_decoder.h"
#include "http/server.h"
#include "http/wire.h"

namespace osb::http {

class StreamBody final : public BodyReader {
 public:
  StreamBody(Wire& wire, io::Duration read_limit) : wire_(wire), read_limit_(read_limit) {}

  void begin(BodyDecoder decoder, bool expects_continue);

  Task<Result<size_t>> read_some(std::span<char> into) override;
  std::optional<uint64_t> length() const override { return decoder_.declared(); }

  bool done() const { return decoder_.done(); }
  // The client holds its body back until it is asked for; an answer means that it never is.
  bool held_back() const { return expects_continue_; }
  void answer_started() { answer_started_ = true; }
  std::optional<uint64_t> remaining() const { return decoder_.remaining(); }

 private:
  Result<void> ask_for_body();

  Wire& wire_;
  io::Duration read_limit_;
  BodyDecoder decoder_;
  bool expects_continue_ = false;
  bool answer_started_ = false;
};

}  // namespace osb::http
