#pragma once

// Bytes between two sockets, both ways, each direction at the pace of its slower side: what one does not take
// is not read from the other. A direction that ends is closed alone. Small exchanges are copied; what becomes
// a stream is moved through a pipe and never copied (splice(2)).

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "io/socket.h"

namespace osb::egress {

// Enough to tell "HTTP/1.1 101" from other answers.
inline constexpr size_t kAnswerBegin = 12;

// A connection on its way through. The two directions hold it; its end is when both have let go.
class Flow {
 public:
  Flow(io::Socket client_socket, io::Socket server_socket, std::function<void(const Flow&)> on_end)
      : client(std::move(client_socket)),
        server(std::move(server_socket)),
        answered(client.get_executor()),
        back_ended(client.get_executor()),
        on_end_(std::move(on_end)) {}
  ~Flow() { on_end_(*this); }
  Flow(const Flow&) = delete;

  // Both sides hear of it at once. A client that was refused in words is left to read them.
  void cut();
  void refuse_client() { client_refused_ = true; }

  io::Socket client, server;
  uint64_t sent = 0, received = 0;  // bytes, as the client sees it
  std::string answer_begin;         // what the server said first, kAnswerBegin bytes of it
  std::string last_words;           // for the client, behind everything that the server still says
  io::Event answered;               // answer_begin is whole, or will never be
  io::Event back_ended;             // carry_back has ended
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

 private:
  std::function<void(const Flow&)> on_end_;
  bool client_refused_ = false;
};
using FlowPtr = std::shared_ptr<Flow>;

// Closes so that the other side sees a broken connection, not an end.
void reset(io::Socket& socket);
// After the last words: lets the other side read them before it hears of the end.
io::Task<> end_gently(io::Socket& socket);

// Until that direction ends. What breaks one breaks both.
io::Task<> carry_out(FlowPtr flow);   // from the client
io::Task<> carry_back(FlowPtr flow);  // from the server

}  // namespace osb::egress
