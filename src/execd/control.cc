#include "execd/control.h"

#include "base/clock.h"
#include "base/frame.h"
#include "base/log.h"
#include "json/decode.h"

namespace osb::execd {
namespace {

constexpr auto kInitDeadline = std::chrono::seconds(30);
constexpr auto kAcknowledgeDeadline = std::chrono::hours(1);
constexpr auto kFailureDeadline = std::chrono::seconds(5);
constexpr auto kWriteDeadline = std::chrono::seconds(30);
constexpr size_t kMaxFrame = 4 << 20;

// {"WORD":true}
bool says(std::string_view word, std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_object()) return false;
  auto* said = value->as_object().if_contains(word);
  return said && said->is_bool() && said->as_bool();
}

}  // namespace

Control::Control(Core& core, Entry& entry, Fd listener)
    : entry_(entry), connections_(core.executor), acknowledged_(core.executor), told_failure_(core.executor) {
  if (listener.valid()) acceptor_.emplace(core.executor, std::move(listener));
}

io::Task<int> Control::run() {
  if (acceptor_) connections_.spawn(accept());
  int code = 0;
  // The history of states: 1 is waiting, 2 running or failed, 3 ended.
  bool late = co_await io::race(entry_.wait_beyond(1), io::sleep_for(kInitDeadline)) == 1;
  if (late && held_) {
    co_await entry_.wait_beyond(1);
    late = false;
  }
  if (late) {
    log::error("nobody started the entry process",
               {{"seconds", std::chrono::seconds(kInitDeadline).count()}});
    code = 1;
  } else if (entry_.state() == Entry::State::failed) {
    // The sandbox ends with this process; whoever sent the entry process is to hear why first. A sandbox that
    // waited may be somebody's already: then it is an end like others, and is stored before it is
    // acknowledged.
    if (held_) {
      co_await io::race(acknowledged_.wait(), io::sleep_for(kAcknowledgeDeadline));
    } else {
      co_await io::race(told_failure_.wait(), io::sleep_for(kFailureDeadline));
    }
    code = 1;
  } else {
    co_await entry_.wait_beyond(2);
    co_await io::race(acknowledged_.wait(), io::sleep_for(kAcknowledgeDeadline));
    code = entry_.exit_code();
  }
  if (acceptor_) acceptor_->close();
  co_await connections_.close();
  co_return code;
}

io::Task<> Control::accept() {
  while (true) {
    auto socket = co_await acceptor_->accept();
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
    std::string bytes = encode_frame(entry_.history()[next]);
    auto sent =
        co_await io::with_deadline(kWriteDeadline, "control", io::write_all(socket, std::string_view(bytes)));
    if (!sent) co_return;
    if (entry_.state() == Entry::State::failed && next + 1 == entry_.history().size()) told_failure_.set();
  }
}

io::Task<> Control::receive(io::Socket& socket) {
  FrameReader frames(kMaxFrame);
  while (true) {
    auto text = frames.next();
    if (!text) co_return log::warn("control frame refused", {{"reason", text.error().message}});
    if (!*text) {
      char piece[4096];
      auto got = co_await io::read_some(socket, piece);
      if (!got || *got == 0) co_return;
      frames.feed({piece, *got});
      continue;
    }
    if (says("ack", **text)) {
      bool over = entry_.state() == Entry::State::ended || entry_.state() == Entry::State::failed;
      if (over) acknowledged_.set();
      continue;
    }
    if (says("hold", **text)) {
      // Once: a server that takes the sandbox over says it again.
      if (!held_) entry_.rehearse();
      held_ = true;
      continue;
    }
    auto request = parse_entry(**text);
    auto started =
        request ? entry_.start(std::move(*request)) : Result<void>(std::unexpected(request.error()));
    if (!started) {
      log::warn("control frame refused", {{"reason", started.error().message}});
      co_return;
    }
  }
}

}  // namespace osb::execd
