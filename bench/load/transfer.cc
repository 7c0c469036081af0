#include "transfer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "http.h"

namespace load {
namespace {

constexpr size_t kBuffer = 256 * 1024;
constexpr std::string_view kStdout = R"({"type":"stdout","text":")";

std::string why(const char* what) { return std::string(what) + ": " + strerror(errno); }

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    timeval limit = {120, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

 private:
  int fd_;
};

using Sink = std::function<void(std::string_view)>;

// An answer's body, handed on as it arrives: Content-Length or chunked.
class BodyReader {
 public:
  BodyReader(const Socket& socket, Sink sink)
      : socket_(socket), sink_(std::move(sink)), buffer_(new char[kBuffer]) {}

  // The status, or 0 when the answer broke off.
  int read_all() {
    size_t end = 0;
    while ((end = view().find("\r\n\r\n")) == std::string_view::npos) {
      if (!fill()) return 0;
    }
    std::string head(view().substr(0, end + 2));
    begin_ += end + 4;
    int status = head.starts_with("HTTP/1.1 ") ? atoi(head.c_str() + 9) : 0;
    if (const char* length = ::strcasestr(head.c_str(), "\r\ncontent-length:")) {
      return pass(strtoull(length + 17, nullptr, 10)) ? status : 0;
    }
    if (::strcasestr(head.c_str(), "\r\ntransfer-encoding: chunked") == nullptr) return 0;
    return chunks() ? status : 0;
  }

 private:
  std::string_view view() const { return {buffer_.get() + begin_, end_ - begin_}; }

  bool fill() {
    if (begin_ == end_) begin_ = end_ = 0;
    if (end_ == kBuffer) {
      memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
      if (end_ == kBuffer) return false;
    }
    ssize_t n = ::recv(socket_.get(), buffer_.get() + end_, kBuffer - end_, 0);
    if (n <= 0) return false;
    end_ += static_cast<size_t>(n);
    return true;
  }

  bool pass(uint64_t left) {
    while (left > 0) {
      if (begin_ == end_ && !fill()) return false;
      size_t take = static_cast<size_t>(std::min<uint64_t>(left, end_ - begin_));
      sink_({buffer_.get() + begin_, take});
      begin_ += take;
      left -= take;
    }
    return true;
  }

  bool line(std::string& out) {
    size_t end = 0;
    while ((end = view().find("\r\n")) == std::string_view::npos) {
      if (!fill()) return false;
    }
    out = view().substr(0, end);
    begin_ += end + 2;
    return true;
  }

  bool chunks() {
    std::string text;
    while (line(text)) {
      uint64_t size = strtoull(text.c_str(), nullptr, 16);
      if (size == 0) return line(text) && text.empty();
      if (!pass(size) || !line(text) || !text.empty()) return false;
    }
    return false;
  }

  const Socket& socket_;
  Sink sink_;
  std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0, end_ = 0;
};

}  // namespace

void EventCounter::event(std::string_view line) {
  if (line.starts_with(kStdout)) {
    std::string_view text = line.substr(kStdout.size());
    const void* quote = memchr(text.data(), '"', text.size());
    ++counted_.lines;
    if (quote) counted_.bytes += static_cast<uint64_t>(static_cast<const char*>(quote) - text.data());
  } else if (line.find(kCompleteEvent) != std::string_view::npos) {
    counted_.complete = true;
  }
}

void EventCounter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const void* found = memchr(bytes.data(), '\n', bytes.size());
    if (!found) {
      partial_.append(bytes);
      return;
    }
    size_t end = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
    if (partial_.empty()) {
      event(bytes.substr(0, end));
    } else {
      partial_.append(bytes.substr(0, end));
      event(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
}

std::optional<double> stream(int port, const std::string& request, Counted& counted, std::string& problem) {
  double start = now_us();
  Socket socket(connect_loopback(port));
  EventCounter counter;
  BodyReader reader(socket, [&](std::string_view piece) { counter.feed(piece); });
  if (!socket.valid() || !socket.send(request)) {
    problem = why("send");
    return std::nullopt;
  }
  int status = reader.read_all();
  double took = now_us() - start;
  counted = counter.counted();
  if (status == 200 && counted.complete) return took;
  problem = status == 200 ? "the command did not complete" : "status " + std::to_string(status);
  return std::nullopt;
}

std::optional<double> download(int port, const std::string& path, uint64_t bytes, std::string& problem) {
  double start = now_us();
  Socket socket(connect_loopback(port));
  uint64_t received = 0;
  BodyReader reader(socket, [&](std::string_view piece) { received += piece.size(); });
  if (!socket.valid() || !socket.send(make_request("GET", path, port))) {
    problem = why("send");
    return std::nullopt;
  }
  int status = reader.read_all();
  if (status == 200 && received == bytes) return now_us() - start;
  problem = "status " + std::to_string(status) + " and " + std::to_string(received) + " bytes";
  return std::nullopt;
}

std::optional<double> upload(int port, const std::string& path, const std::string& destination,
                             uint64_t bytes, std::string& problem) {
  const std::string part = "--bench-boundary\r\nContent-Disposition: form-data; name=\"";
  std::string front = part + "metadata\"; filename=\"metadata\"\r\n\r\n{\"path\":\"" + destination +
                      "\"}\r\n" + part + "file\"; filename=\"file\"\r\n\r\n";
  std::string back = "\r\n--bench-boundary--\r\n";
  std::string head = "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
                     "\r\nContent-Type: multipart/form-data; boundary=bench-boundary\r\nContent-Length: " +
                     std::to_string(front.size() + bytes + back.size()) + "\r\n\r\n";
  std::string block(kBuffer, 'x');
  double start = now_us();
  Socket socket(connect_loopback(port));
  bool sent = socket.valid() && socket.send(head + front);
  for (uint64_t left = bytes; sent && left > 0;) {
    size_t size = static_cast<size_t>(std::min<uint64_t>(left, block.size()));
    sent = socket.send(std::string_view(block).substr(0, size));
    left -= size;
  }
  std::string answer;
  BodyReader reader(socket, [&](std::string_view piece) { answer.append(piece.substr(0, 300)); });
  int status = sent && socket.send(back) ? reader.read_all() : 0;
  if (status == 200) return now_us() - start;
  problem = "status " + std::to_string(status) + " " + answer;
  return std::nullopt;
}

std::optional<double> receive_and_write(const std::string& file, uint64_t bytes, std::string& problem) {
  Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) < 0 ||
      ::listen(listener.get(), 1) < 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) < 0) {
    problem = why("listen");
    return std::nullopt;
  }
  pid_t pid = ::fork();
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int in = ::accept(listener.get(), nullptr, nullptr);
    int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    static char buffer[kBuffer];
    uint64_t total = 0;
    ssize_t n = 0;
    while ((n = ::recv(in, buffer, sizeof buffer, 0)) > 0) {
      if (::write(out, buffer, static_cast<size_t>(n)) != n) ::_exit(1);
      total += static_cast<uint64_t>(n);
    }
    if (::send(in, "k", 1, MSG_NOSIGNAL) != 1) ::_exit(1);
    ::_exit(total == bytes ? 0 : 1);
  }
  std::string block(kBuffer, 'x');
  double start = now_us();
  bool fine = pid > 0;
  double took = 0;
  {
    Socket socket(connect_loopback(ntohs(address.sin_port)));
    for (uint64_t left = bytes; fine && left > 0;) {
      size_t piece = static_cast<size_t>(std::min<uint64_t>(left, block.size()));
      fine = socket.valid() && socket.send(std::string_view(block).substr(0, piece));
      left -= piece;
    }
    ::shutdown(socket.get(), SHUT_WR);
    char answer = 0;
    fine = fine && ::recv(socket.get(), &answer, 1, 0) == 1;
    took = now_us() - start;
  }
  int status = 1;
  if (pid > 0) ::waitpid(pid, &status, 0);
  if (fine && status == 0) return took;
  problem = "the bare loop failed";
  return std::nullopt;
}

std::optional<double> MemoryStock::renew(uint64_t bytes, std::string& problem) {
  constexpr uint64_t kPage = 4096, kBlock = 512 * 1024;
  double start = now_us();
  release();
  if (bytes == 0) return now_us() - start;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    problem = why("mmap");
    return std::nullopt;
  }
  at_ = at;
  bytes_ = bytes;
  // Of a huge page nothing is freed until all of it is.
  ::madvise(at, bytes, MADV_NOHUGEPAGE);
  char* memory = static_cast<char*>(at);
  for (uint64_t i = 0; i < bytes; i += kPage) static_cast<volatile char*>(memory)[i] = 1;
  for (uint64_t i = 0; i + kBlock <= bytes; i += kBlock) {
    ::madvise(memory + i + kPage, kBlock - kPage, MADV_DONTNEED);
  }
  return now_us() - start;
}

void MemoryStock::release() {
  if (at_ != nullptr) ::munmap(std::exchange(at_, nullptr), bytes_);
}

}  // namespace load
