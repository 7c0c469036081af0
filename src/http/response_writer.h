#pragma once

// The answer side of a server connection.

#include <string>
#include <vector>

#include "http/head_format.h"
#include "http/server.h"
#include "http/stream_body.h"

namespace osb::http {

class StreamWriter final : public ResponseWriter {
 public:
  StreamWriter(Wire& wire, StreamBody& body) : wire_(wire), body_(body) {}

  struct Begin {
    bool head_only = false;  // HEAD: everything but the body
    bool http_1_1 = true;
    bool close = false;  // the connection ends after this answer
  };
  void begin(Begin request);

  void always(std::string name, std::string value) override;
  Task<Result<void>> send(int status, Headers headers, std::string body) override;
  Task<Result<void>> start(int status, Headers headers, std::optional<uint64_t> length) override;
  Task<Result<void>> write(std::string_view bytes) override;
  Task<Result<void>> write_pipe(int pipe, size_t size) override;
  Task<Result<void>> finish() override;
  bool started() const override { return state_ != State::idle; }
  void abort() override;
  std::pair<io::Socket*, std::string> take_over() override;
  Task<> wait_closed() override;
  void when_closed(std::function<void()> call) override { when_closed_ = std::move(call); }
  void sweep();

  bool finished() const { return state_ == State::finished; }
  bool taken_over() const { return state_ == State::taken; }
  bool closes() const { return request_.close; }
  void close_after() { request_.close = true; }

  // How much of an unread request body is thrown away to keep the connection.
  static constexpr uint64_t kMaxDrainBytes = 256 * 1024;

 private:
  enum class State { idle, open, finished, aborted, taken };

  Result<void> open(int status, const Headers& headers, std::optional<uint64_t> length);
  Result<void> check_open() const;
  Result<void> count(size_t size);
  Task<Result<void>> finish_write(io::Pieces pieces, size_t sent);

  Wire& wire_;
  StreamBody& body_;
  Begin request_;
  State state_ = State::idle;
  std::function<void()> when_closed_;
  std::vector<HeaderField> always_;
  std::string head_;  // composed; not sent yet when head_pending_
  bool head_pending_ = false;
  bool mute_ = false;  // HEAD, 204, 304, 1xx: bytes of the body are counted and dropped
  BodyFraming framing_;
  uint64_t left_ = 0;  // of a declared length
  ChunkPrefix prefix_;
};

}  // namespace osb::http
