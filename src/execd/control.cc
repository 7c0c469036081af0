#include "execd/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "json/decode.h"

namespace osb::execd {
namespace {

constexpr auto kInitDeadline = std::chrono::seconds(30);
constexpr auto kAcknowledgeDeadline = std::chrono::hours(1);
constexpr auto kFailureDeadline = std::chrono::seconds(5);
constexpr auto kWriteDeadline = std::chrono::seconds(30);
constexpr size_t kMaxFrame = 4 << 20;

std::string frame(std::string_view json) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(json.size() >> shift));
  out.append(json);
  return out;
}

io::Task<Result<void>> read_exactly(io::Socket& socket, std::span<char> into) {
  while (!into.empty()) {
    size_t n = CO_TRY(co_await io::read_some(socket, into));
    if (n == 0) co_return fail(Code::unavailable, "closed");
    into = into.subspan(n);
  }
  co_return Result<void>{};
}

io::Task<Result<std::string>> read_frame(io::Socket& socket) {
  unsigned char head[4];
  CO_TRY(co_await read_exactly(socket, {reinterpret_cast<char*>(head), 4}));
  size_t length = size_t{head[0]} << 24 | size_t{head[1]} << 16 | size_t{head[2]} << 8 | head[3];
  if (length > kMaxFrame)
    co_return fail(Code::too_large, "a control frame of " + std::to_string(length) + " bytes");
  std::string body(length, '\0');
  CO_TRY(co_await read_exactly(socket, body));
  co_return body;
}

bool is_acknowledgement(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_object()) return false;
  auto* ack = value->as_object().if_contains("ack");
  return ack && ack->is_bool() && ack->as_bool();
}

}  // namespace

Control::Control(Core& core, Entry& entry, Fd listener)
    : entry_(entry),
      acceptor_(core.executor, std::move(listener)),
      connections_(core.executor),
      acknowledged_(core.executor),
      told_failure_(core.executor) {}

io::Task<int> Control::run() {
  connections_.spawn(accept());
  int code = 0;
  // The history of states: 1 is waiting, 2 running or failed, 3 ended.
  if (co_await io::race(entry_.wait_beyond(1), io::sleep_for(kInitDeadline)) == 1) {
    log::error("nobody started the entry process",
               {{"seconds", std::chrono::seconds(kInitDeadline).count()}});
    code = 1;
  } else if (entry_.state() == Entry::State::failed) {
    // The sandbox ends with this process; whoever sent the entry process is to hear why first.
    co_await io::race(told_failure_.wait(), io::sleep_for(kFailureDeadline));
    code = 1;
  } else {
    co_await entry_.wait_beyond(2);
    co_await io::race(acknowledged_.wait(), io::sleep_for(kAcknowledgeDeadline));
  }
  acceptor_.close();
  co_await connections_.close();
  co_return code;
}

io::Task<> Control::accept() {
  while (true) {
    auto socket = co_await acceptor_.accept();
    if (socket) {
      connections_.spawn(serve(std::move(*socket)));
    } else if (socket.error().code == Code::exhausted) {
      co_await io::sleep_for(milliseconds(100));  // out of descriptors: the queue keeps the others
    } else {
      co_return;
    }
  }
}

io::Task<> Control::serve(io::Socket socket) { co_await io::race(send_states(socket), receive(socket)); }

io::Task<> Control::send_states(io::Socket& socket) {
  // Whoever comes late gets the present state only; then every change.
  for (size_t next = entry_.history().size() - 1;; ++next) {
    co_await entry_.wait_beyond(next);
    std::string bytes = frame(entry_.history()[next]);
    auto sent =
        co_await io::with_deadline(kWriteDeadline, "control", io::write_all(socket, std::string_view(bytes)));
    if (!sent) co_return;
    if (entry_.state() == Entry::State::failed && next + 1 == entry_.history().size()) told_failure_.set();
  }
}

io::Task<> Control::receive(io::Socket& socket) {
  while (true) {
    auto text = co_await read_frame(socket);
    if (!text) co_return;
    if (is_acknowledgement(*text)) {
      if (entry_.state() == Entry::State::ended) acknowledged_.set();
      continue;
    }
    auto request = parse_entry(*text);
    auto started =
        request ? entry_.start(std::move(*request)) : Result<void>(std::unexpected(request.error()));
    if (!started) {
      log::warn("control frame refused", {{"reason", started.error().message}});
      co_return;
    }
  }
}

}  // namespace osb::execd
