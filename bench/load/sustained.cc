#include "sustained.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace load {
namespace {

constexpr double kStallUs = 30e6;  // no answer at all for this long: give up

enum class Step { create, run, remove, idle };

struct Client {
  int fd = -1;
  Step step = Step::idle;
  Response response;
  std::string id;
  double started = 0;
};

struct Totals {
  std::vector<double> cycles_us;
  long failed = 0;
  std::string first_failure;
  double last_end = 0;
};

class Run {
 public:
  Run(const Service& service, double seconds) : service_(service), seconds_(seconds), start_(now_us()) {}

  bool send(Client& client, Step step, const std::string& request) {
    client.step = step;
    client.response = Response();
    // One small request on an idle connection always fits the socket buffer.
    return ::send(client.fd, request.data(), request.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(request.size());
  }

  bool begin(Client& client) {
    if (now_us() - start_ >= seconds_ * 1e6) {
      client.step = Step::idle;
      return true;
    }
    client.started = now_us();
    return send(client, Step::create, service_.create());
  }

  // The answer is complete: judge it and take the next step. False ends the client.
  bool advance(Client& client) {
    const Response& r = client.response;
    switch (client.step) {
      case Step::create:
        client.id = find_id(r.body());
        if (r.status() / 100 != 2 || client.id.empty()) return fail(client, "create");
        return send(client, Step::run, service_.run(client.id, "echo x"));
      case Step::run: {
        bool ran = r.status() == 200 && r.body().find(kOutputEvent) != std::string::npos &&
                   r.body().find(kCompleteEvent) != std::string::npos;
        if (!ran) fail(client, "run");
        return send(client, Step::remove, service_.remove(client.id));
      }
      case Step::remove:
        if (r.status() != 204) return fail(client, "delete");
        totals_.last_end = now_us();
        totals_.cycles_us.push_back(totals_.last_end - client.started);
        return begin(client);
      case Step::idle:
        return false;
    }
    return false;
  }

  bool fail(Client& client, const char* what) {
    if (totals_.failed++ == 0) {
      totals_.first_failure = std::string(what) + ": " + std::to_string(client.response.status()) + " " +
                              client.response.body().substr(0, 300);
    }
    return false;
  }

  Totals& totals() { return totals_; }
  double start() const { return start_; }

 private:
  const Service& service_;
  double seconds_;
  double start_;
  Totals totals_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= 0 && c < 32 ? ' ' : c;
  }
  return out + "\"";
}

void print(Run& run, int clients) {
  Totals& t = run.totals();
  std::sort(t.cycles_us.begin(), t.cycles_us.end());
  auto at = [&](double q) {
    return t.cycles_us.empty()
               ? 0
               : t.cycles_us[static_cast<size_t>(q * static_cast<double>(t.cycles_us.size() - 1))];
  };
  double took = t.cycles_us.empty() ? 0 : (t.last_end - run.start()) / 1e6;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  double cpu = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  // own_cpu: the share of one core that this generator used; near 1 it would be measuring itself.
  printf(
      "{\"clients\":%d,\"seconds\":%.3f,\"cycles\":%zu,\"per_second\":%.1f,\"median_us\":%.1f,\"p99_us\":%."
      "1f,"
      "\"failed\":%ld,\"own_cpu\":%.3f%s%s}\n",
      clients, took, t.cycles_us.size(), took > 0 ? static_cast<double>(t.cycles_us.size()) / took : 0,
      at(0.5), at(0.99), t.failed, took > 0 ? cpu / took : 0, t.failed > 0 ? ",\"first_failure\":" : "",
      t.failed > 0 ? quoted(t.first_failure).c_str() : "");
}

}  // namespace

int sustained(const Service& service, int count, double seconds) {
  int loop = ::epoll_create1(EPOLL_CLOEXEC);
  std::vector<Client> clients(static_cast<size_t>(count));
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i].fd = connect_loopback(service.port);
    epoll_event event = {.events = EPOLLIN, .data = {.u64 = i}};
    if (clients[i].fd < 0 || ::epoll_ctl(loop, EPOLL_CTL_ADD, clients[i].fd, &event) < 0) {
      fprintf(stderr, "bench-load: connect to port %d: %s\n", service.port, strerror(errno));
      return 1;
    }
  }
  Run run(service, seconds);
  size_t live = 0;
  for (Client& client : clients) live += run.begin(client) ? 1 : 0;
  char buffer[65536];
  double heard = now_us();
  while (live > 0) {
    epoll_event events[64];
    int ready = ::epoll_wait(loop, events, 64, 1000);
    if (ready == 0 && now_us() - heard > kStallUs) {
      fprintf(stderr, "bench-load: no answer for %.0f s\n", kStallUs / 1e6);
      ++run.totals().failed;
      break;
    }
    for (int i = 0; i < ready; ++i) {
      Client& client = clients[events[i].data.u64];
      ssize_t got = ::recv(client.fd, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EINTR) continue;
      heard = now_us();
      bool fine = got > 0 && client.response.feed({buffer, static_cast<size_t>(got)});
      if (!fine) {
        run.fail(client, "the connection ended or the answer was not HTTP");
      } else if (client.response.complete()) {
        fine = run.advance(client);
      }
      if (!fine || client.step == Step::idle) {
        ::epoll_ctl(loop, EPOLL_CTL_DEL, client.fd, nullptr);
        ::close(client.fd);
        --live;
      }
    }
  }
  ::close(loop);
  print(run, count);
  return run.totals().failed > 0 ? 1 : 0;
}

}  // namespace load
