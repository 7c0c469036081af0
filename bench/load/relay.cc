#include "relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "http.h"

namespace load {
namespace {

constexpr size_t kPiece = 256 * 1024;

int failed(const char* what) {
  fprintf(stderr, "bench-load: %s: %s\n", what, strerror(errno));
  return 1;
}

int listen_everywhere(int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) < 0 || ::listen(fd, 1024) < 0) return -1;
  return fd;
}

int connect_to(const std::string& address, int port) {
  int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  if (fd >= 0 && ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

void send_all(int fd, uint64_t bytes) {
  static const std::vector<char> piece(kPiece, 'x');
  while (bytes > 0) {
    ssize_t n = ::send(fd, piece.data(), std::min<uint64_t>(bytes, kPiece), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes -= static_cast<uint64_t>(n);
  }
}

}  // namespace

int relay_server(int greeting_port, int stream_port, uint64_t bytes) {
  pollfd listeners[2] = {{.fd = listen_everywhere(greeting_port), .events = POLLIN, .revents = 0},
                         {.fd = listen_everywhere(stream_port), .events = POLLIN, .revents = 0}};
  if (listeners[0].fd < 0 || listeners[1].fd < 0) return failed("listen");
  printf("ready\n");
  fflush(stdout);
  while (::poll(listeners, 2, -1) > 0) {
    for (int i = 0; i < 2; ++i) {
      if (!(listeners[i].revents & POLLIN)) continue;
      int client = ::accept4(listeners[i].fd, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) continue;
      send_all(client, i == 0 ? 1 : bytes);
      ::close(client);
    }
  }
  return failed("poll");
}

int relay_greetings(const std::string& address, int port, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    double start = now_us();
    int fd = connect_to(address, port);
    if (fd < 0) return failed("connect");
    char byte = 0;
    ssize_t n = ::recv(fd, &byte, 1, 0);
    double took = now_us() - start;
    ::close(fd);
    if (n != 1) return failed("the first byte");
    char text[32];
    snprintf(text, sizeof text, "%s%.1f", out.empty() ? "" : ",", took);
    out += text;
  }
  printf("{\"us\":[%s]}\n", out.c_str());
  return 0;
}

int relay_stream(const std::string& address, int port, uint64_t bytes) {
  std::vector<char> piece(kPiece);
  double start = now_us();
  int fd = connect_to(address, port);
  if (fd < 0) return failed("connect");
  uint64_t total = 0;
  while (true) {
    ssize_t n = ::recv(fd, piece.data(), piece.size(), 0);
    if (n < 0) return failed("receive");
    if (n == 0) break;
    total += static_cast<uint64_t>(n);
  }
  double took = now_us() - start;
  ::close(fd);
  if (total != bytes) {
    fprintf(stderr, "bench-load: %llu bytes came\n", static_cast<unsigned long long>(total));
    return 1;
  }
  printf("{\"us\":%.1f}\n", took);
  return 0;
}

}  // namespace load
