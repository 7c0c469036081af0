#include "execd/entry_log.h"

#include <algorithm>

#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr size_t kReadSize = 16 * 1024;
// A process that writes without end must not keep execd busy: its pipe is allowed to be full.
constexpr auto kPause = std::chrono::milliseconds(10);

}  // namespace

void EntryLog::append(std::string_view bytes, WallTime at) {
  while (!bytes.empty()) {
    if (open_.empty()) open_ = format_api_time(at) + " ";
    size_t end = bytes.find('\n');
    std::string_view piece = bytes.substr(0, end);
    size_t room = kMostLine - std::min(open_.size(), kMostLine);
    open_.append(piece.substr(0, room));
    if (piece.size() > room) forgot_ = true;
    if (end == bytes.npos) return;
    finish_line();
    bytes.remove_prefix(end + 1);
  }
}

void EntryLog::finish_line() {
  bytes_ += open_.size() + 1;
  lines_.push_back(std::exchange(open_, {}));
  while (bytes_ > kMostBytes) {
    bytes_ -= lines_.front().size() + 1;
    lines_.pop_front();
    forgot_ = true;
  }
}

std::string EntryLog::text() const {
  std::string out;
  out.reserve(bytes_ + open_.size() + 1);
  for (const std::string& line : lines_) out.append(line).append("\n");
  if (!open_.empty()) out.append(open_).append("\n");
  return out;
}

Result<Fd> EntryOutput::open() { return open_pipe(pipe_); }

void EntryOutput::take(std::string_view bytes) { log_.append(bytes, wall_now()); }

void EntryOutput::note(std::string_view line) { take(std::string(line) + "\n"); }

io::Task<> EntryOutput::read(std::shared_ptr<EntryOutput> self) {
  while (co_await io::wait_readable(self->pipe_)) {
    int pipe = self->pipe_.native_handle();
    if (!read_pipe(pipe, kReadSize, [&](std::string_view bytes) { self->take(bytes); })) break;
    if (waiting_in(pipe) >= kReadSize) co_await io::sleep_for(kPause);
  }
  boost::system::error_code ignored;
  self->pipe_.close(ignored);
}

void EntryOutput::drain() {
  drain_pipe(pipe_.native_handle(), [this](std::string_view bytes) { take(bytes); });
}

}  // namespace osb::execd
