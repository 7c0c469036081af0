#pragma once

// The body of the message that a Wire currently receives, as a BodyReader.

#include "http/body_decoder.h"
#include "http/server.h"
#include "http/wire.h"

namespace osb::http {

// How long a sender may keep its reader waiting (ServerLimits); nothing counts without a Wire's ticks.
struct BodyPace {
  io::Duration silence{};
  io::Duration credit{};  // zero: as slow as it likes
  uint64_t rate = 0;
};

class StreamBody final : public BodyReader {
 public:
  StreamBody(Wire& wire, BodyPace pace) : wire_(wire), pace_(pace) {}

  void begin(BodyDecoder decoder, bool expects_continue);

  Task<Result<size_t>> read_some(std::span<char> into) override;
  std::optional<uint64_t> length() const override { return decoder_.declared(); }
  uint64_t direct() const override;
  Task<Result<size_t>> move_some(int pipe, size_t limit) override;

  void allow_slow() override { slow_ = true; }
  bool put_back(std::string bytes) override;

  bool done() const { return decoder_.done(); }
  // All of a body whose length is known, when all of it is here; takes nothing else.
  std::optional<std::string> take_all();
  // Throws away what is here, without waiting.
  void skip_received();
  // The client holds its body back until it is asked for; an answer means that it never is.
  bool held_back() const { return expects_continue_; }
  void answer_started() { answer_started_ = true; }
  std::optional<uint64_t> remaining() const { return decoder_.remaining(); }

 private:
  Result<void> ask_for_body();
  io::Duration patience() const;
  Result<size_t> note_direct(TimePoint waited_from, size_t got);
  Result<void> account(TimePoint waited_from, size_t got);

  Wire& wire_;
  BodyPace pace_;
  io::Duration credit_{};
  bool slow_ = false;
  std::string returned_;  // read before and put back
  BodyDecoder decoder_;
  bool expects_continue_ = false;
  bool answer_started_ = false;
};

}  // namespace osb::http
