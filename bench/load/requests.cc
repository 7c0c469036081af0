#include "requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

namespace load {
namespace {

constexpr int kStallMs = 30'000;  // no answer at all for this long: give up

struct Client {
  int fd = -1;
  Response response;
};

struct Totals {
  long requests = 0;
  size_t body_bytes = 0;  // of the last answer
};

class Run {
 public:
  Run(int port, const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      bool changes = path.starts_with(kPatch);
      turns_.push_back({changes ? path.substr(kPatch.size()) : path, changes,
                        changes ? "" : make_request("GET", path, port)});
    }
    port_ = port;
  }

  bool send(Client& client) {
    const Turn& turn = turns_[next_++ % turns_.size()];
    if (turn.changes) {
      std::string body = "{\"turn\":\"" + std::to_string(next_) + "\"}";
      change_ = make_request("PATCH", turn.path, port_, body);
    }
    const std::string& text = turn.changes ? change_ : turn.text;
    client.response = Response();
    // One small request on an idle connection always fits the socket buffer.
    return ::send(client.fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  // False when the connection is of no more use.
  bool receive(Client& client) {
    ssize_t got = ::recv(client.fd, buffer_, sizeof buffer_, 0);
    if (got <= 0 || !client.response.feed({buffer_, static_cast<size_t>(got)})) return false;
    if (!client.response.complete()) return true;
    if (client.response.status() != 200) return false;
    ++totals_.requests;
    totals_.body_bytes = client.response.body().size();
    return send(client);
  }

  const Totals& totals() const { return totals_; }

 private:
  struct Turn {
    std::string path;
    bool changes;
    std::string text;  // of a request that is always the same
  };
  static constexpr std::string_view kPatch = "PATCH:";

  int port_ = 0;
  std::vector<Turn> turns_;
  std::string change_;
  size_t next_ = 0;
  Totals totals_;
  char buffer_[262144];
};

}  // namespace

int requests(int port, const std::vector<std::string>& paths, int count, double seconds) {
  int loop = ::epoll_create1(EPOLL_CLOEXEC);
  Run run(port, paths);
  std::vector<Client> clients(static_cast<size_t>(count));
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i].fd = connect_loopback(port);
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = i}};
    if (clients[i].fd < 0 || ::epoll_ctl(loop, EPOLL_CTL_ADD, clients[i].fd, &event) < 0 ||
        !run.send(clients[i])) {
      fprintf(stderr, "bench-load: connect to port %d: %s\n", port, strerror(errno));
      return 1;
    }
  }
  double start = now_us(), end = start + seconds * 1e6;
  while (now_us() < end) {
    epoll_event events[64];
    int ready = ::epoll_wait(loop, events, 64, kStallMs);
    if (ready <= 0) return 1;
    for (int i = 0; i < ready; ++i) {
      Client& client = clients[events[i].data.u64];
      if (run.receive(client)) continue;
      fprintf(stderr, "bench-load: status %d: %.300s\n", client.response.status(),
              client.response.body().c_str());
      return 1;
    }
  }
  double took = (now_us() - start) / 1e6;
  printf("{\"clients\":%d,\"seconds\":%.3f,\"requests\":%ld,\"per_second\":%.1f,\"body_bytes\":%zu}\n", count,
         took, run.totals().requests, static_cast<double>(run.totals().requests) / took,
         run.totals().body_bytes);
  for (Client& client : clients) ::close(client.fd);
  ::close(loop);
  return 0;
}

}  // namespace load
