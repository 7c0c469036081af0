#include "execd/entry_log.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

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

Result<Fd> EntryOutput::open() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno("pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  // Only our end: programs expect a blocking standard output.
  if (::fcntl(read_end.get(), F_SETFL, O_NONBLOCK) < 0) return fail_errno("pipe");
  boost::system::error_code error;
  pipe_.assign(read_end.get(), error);
  if (error) return std::unexpected(io::to_error("pipe", error));
  read_end.release();
  return write_end;
}

bool EntryOutput::read_once(size_t limit) {
  char buffer[kReadSize];
  ssize_t n = ::read(pipe_.native_handle(), buffer, std::min(limit, sizeof buffer));
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  log_.append({buffer, static_cast<size_t>(n)}, wall_now());
  return n > 0;
}

io::Task<> EntryOutput::read(std::shared_ptr<EntryOutput> self) {
  while (co_await io::wait_readable(self->pipe_)) {
    if (!self->read_once(kReadSize)) break;
    int waiting = 0;
    bool flooded = ::ioctl(self->pipe_.native_handle(), FIONREAD, &waiting) == 0 &&
                   static_cast<size_t>(waiting) >= kReadSize;
    if (flooded) co_await io::sleep_for(kPause);
  }
  boost::system::error_code ignored;
  self->pipe_.close(ignored);
}

void EntryOutput::drain() {
  int waiting = 0;
  if (!pipe_.is_open() || ::ioctl(pipe_.native_handle(), FIONREAD, &waiting) < 0) return;
  for (size_t left = static_cast<size_t>(std::max(waiting, 0)); left > 0;) {
    size_t piece = std::min(left, kReadSize);
    if (!read_once(piece)) return;
    left -= piece;
  }
}

}  // namespace osb::execd
