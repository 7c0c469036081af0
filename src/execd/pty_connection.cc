#include "execd/pty_connection.h"

#include "base/strings.h"
#include "execd/pty_frame.h"
#include "http/websocket.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

constexpr auto kPingInterval = std::chrono::seconds(30);
constexpr auto kEvictDeadline = std::chrono::seconds(5);
constexpr auto kCloseDeadline = std::chrono::seconds(5);

std::string error_frame(std::string_view code, std::string_view text) {
  std::string out = "{\"type\":\"error\",\"error\":";
  json::append_string(out, text);
  return out.append(",\"code\":\"").append(code).append("\"}\n");
}

std::string replay_prefix(uint64_t offset) {
  std::string out(1, '\x03');
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(offset >> shift));
  return out;
}

class Connection {
 public:
  Connection(Core& core, std::shared_ptr<PtySession> session, http::WebSocket socket)
      : session_(std::move(session)),
        socket_(std::move(socket)),
        client_(std::make_shared<PtySession::Client>(core.executor)) {}
  ~Connection() { session_->detach(client_); }

  io::Task<> serve(PtyConnect wanted);

 private:
  io::Task<bool> evict_holder();
  io::Task<> send_side();
  io::Task<> send_output();
  io::Task<> receive();
  io::Task<> keep_alive();
  io::Task<> say_goodbye();
  io::Task<bool> acknowledge_input();
  io::Task<> read_to_the_end();
  io::Task<> close_as_taken_over() { co_await socket_.close(4001, "TAKEN_OVER"); }
  io::Task<bool> on_binary(std::string_view data);
  io::Task<bool> on_text(std::string_view text);
  io::Task<bool> feed(std::string_view bytes);
  io::Task<> fail_with(std::string_view code, std::string_view text);

  std::shared_ptr<PtySession> session_;
  http::WebSocket socket_;
  std::shared_ptr<PtySession::Client> client_;
  bool acknowledges_ = false;
};

io::Task<> Connection::fail_with(std::string_view code, std::string_view text) {
  std::string frame = error_frame(code, text);
  co_await socket_.send_text(frame);
  if (!co_await socket_.close(1011, code)) co_return;
  // What the client has sent meanwhile is read: a connection that is closed over it may take these words
  // away.
  co_await io::race(read_to_the_end(), io::sleep_for(kCloseDeadline));
}

io::Task<> Connection::read_to_the_end() {
  for (auto message = co_await socket_.read(); message && *message;) message = co_await socket_.read();
}

io::Task<bool> Connection::evict_holder() {
  auto deadline = std::chrono::steady_clock::now() + kEvictDeadline;
  while (auto holder = session_->holder()) {
    if (std::chrono::steady_clock::now() >= deadline) co_return false;
    holder->evicted = true;
    holder->changed.set();
    co_await io::sleep_for(std::chrono::milliseconds(5));
  }
  co_return true;
}

io::Task<> Connection::serve(PtyConnect wanted) {
  if (session_->holder() && !co_await evict_holder()) {
    co_return co_await fail_with("ALREADY_CONNECTED", "the other client does not let go");
  }
  if (!session_->has_untold_end()) {
    if (auto started = session_->start(wanted.mode); !started)
      co_return co_await fail_with("START_FAILED", started.error().message);
  }
  acknowledges_ = wanted.acknowledge;
  auto missed = session_->attach(client_, wanted.since);
  if (!missed.bytes.empty()) {
    std::string prefix = replay_prefix(missed.offset);
    if (!co_await socket_.send_binary(prefix, missed.bytes)) co_return;
  }
  std::string connected = "{\"type\":\"connected\",\"session_id\":\"" + session_->id() + "\",\"mode\":\"" +
                          (session_->mode() == PtyMode::terminal ? "pty" : "pipe") + "\"}\n";
  if (!co_await socket_.send_text(connected)) co_return;
  co_await io::race(send_side(), receive());
}

io::Task<> Connection::send_side() { co_await io::race(send_output(), keep_alive()); }

// Ends when the program has, when somebody takes over, or when the client does not take what it is sent.
io::Task<> Connection::send_output() {
  while (true) {
    while (!client_->output.empty() && !client_->evicted) {
      auto next = std::move(client_->output.front());
      client_->output.pop_front();
      auto sent = co_await socket_.send_binary(std::string_view(&next.channel, 1), next.bytes);
      client_->bytes -= next.bytes.size();
      session_->taken();
      if (!sent) co_return;
    }
    if (client_->evicted || (client_->exit_code && client_->output.empty())) break;
    if (acknowledges_ && client_->input_taken > 0) {
      if (!co_await acknowledge_input()) co_return;
      continue;  // much may have changed meanwhile
    }
    client_->changed.reset();
    co_await client_->changed.wait();
  }
  co_await say_goodbye();
}

// So that a client can send as fast as the program reads, and signals still get past what it has not read.
io::Task<bool> Connection::acknowledge_input() {
  size_t taken = std::exchange(client_->input_taken, 0);
  std::string frame = "{\"type\":\"taken\",\"bytes\":" + std::to_string(taken) + "}\n";
  co_return (co_await socket_.send_text(frame)).has_value();
}

io::Task<> Connection::say_goodbye() {
  if (client_->evicted) {
    session_->detach(client_);
    co_await io::race(close_as_taken_over(), io::sleep_for(std::chrono::milliseconds(200)));
    co_return;
  }
  int code = *std::exchange(client_->exit_code, std::nullopt);
  std::string exit = "{\"type\":\"exit\",\"exit_code\":" + std::to_string(code);
  if (int signal = session_->signal(); acknowledges_ && code < 0 && signal != 0)
    exit += ",\"signal\":" + std::to_string(signal);
  exit += "}\n";
  session_->detach(client_);
  if (!co_await socket_.send_text(exit)) co_return session_->keep_untold(code);
  if (!co_await socket_.close(1000, "process exited")) co_return;
  // The other side's answer, which read() in receive() waits for.
  co_await io::sleep_for(kCloseDeadline);
}

io::Task<> Connection::keep_alive() {
  while (true) {
    co_await io::sleep_for(kPingInterval);
    if (!co_await socket_.ping()) co_return;
  }
}

io::Task<> Connection::receive() {
  while (true) {
    auto message = co_await socket_.read();
    if (!message || !*message) co_return;
    std::string data = std::move((*message)->data);
    bool go_on = (*message)->text ? co_await on_text(data) : co_await on_binary(data);
    if (!go_on) co_return;
  }
}

io::Task<bool> Connection::feed(std::string_view bytes) {
  if (session_->write_input(bytes)) co_return true;
  std::string frame = error_frame("STDIN_WRITE_FAILED", "the program does not read its input");
  co_await socket_.send_text(frame);
  co_return false;
}

io::Task<bool> Connection::on_binary(std::string_view data) {
  if (data.empty() || data[0] != '\0') co_return true;
  co_return co_await feed(data.substr(1));
}

io::Task<bool> Connection::on_text(std::string_view text) {
  pty::Frame frame = pty::parse_text_frame(text);
  if (auto* input = std::get_if<pty::Input>(&frame)) co_return co_await feed(input->bytes);
  if (std::holds_alternative<pty::EndOfInput>(frame)) session_->end_input();
  if (auto* resize = std::get_if<pty::Resize>(&frame)) session_->resize(resize->size);
  if (auto* signal = std::get_if<pty::Signal>(&frame)) session_->send_signal(signal->number);
  std::string answer;
  if (std::holds_alternative<pty::Ping>(frame)) answer = "{\"type\":\"pong\"}\n";
  if (auto* unknown = std::get_if<pty::Unknown>(&frame))
    answer = error_frame("INVALID_FRAME", "unknown frame type '" + unknown->type + "'");
  if (answer.empty()) co_return true;
  co_return (co_await socket_.send_text(answer)).has_value();
}

}  // namespace

PtyConnect parse_pty_connect(const http::Query& query) {
  PtyConnect out;
  if (query.get("pty") == "0") out.mode = PtyMode::pipes;
  out.since = parse_number<uint64_t>(query.get("since").value_or("")).value_or(0);
  out.takeover = query.get("takeover") == "1";
  out.acknowledge = query.get("acks") == "1";
  return out;
}

io::Task<> serve_pty(Core& core, std::shared_ptr<PtySession> session, PtyConnect wanted,
                     http::Request& request, http::ResponseWriter& response) {
  auto socket = co_await http::accept_websocket(request, response);
  if (!socket) co_return;
  Connection connection(core, std::move(session), std::move(*socket));
  co_await connection.serve(wanted);
}

}  // namespace osb::execd
