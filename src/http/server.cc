#include "http/server.h"

#include <algorithm>
#include <list>

#include "base/log.h"
#include "http/connection.h"
#include "io/running_time.h"

namespace osb::http {

Task<Result<size_t>> BodyReader::move_some(int, size_t) {
  co_return fail(Code::unsupported, "this body cannot be moved");
}

Task<Result<std::string>> read_all(BodyReader& body, size_t limit) {
  std::string out;
  if (body.length().value_or(0) > limit) {
    co_return fail(Code::too_large, "the body is larger than " + std::to_string(limit) + " bytes");
  }
  // A declared length is only a promise: memory follows the bytes that really come.
  constexpr size_t kFirst = 4 * 1024, kMost = 256 * 1024;
  size_t step = std::clamp(static_cast<size_t>(body.length().value_or(kFirst)), size_t{1}, kMost);
  while (true) {
    size_t have = out.size();
    if (have > limit)
      co_return fail(Code::too_large, "the body is larger than " + std::to_string(limit) + " bytes");
    out.resize_and_overwrite(have + step, [](char*, size_t n) { return n; });
    auto got = co_await body.read_some({out.data() + have, step});
    if (!got) co_return std::unexpected(std::move(got.error()));
    out.resize(have + *got);
    if (*got == 0) co_return out;
    if (*got == step) step = std::min(step * 2, kMost);
  }
}

Task<Result<void>> ResponseWriter::json(int status, std::string body) {
  return send(status, {{"Content-Type", "application/json"}}, std::move(body));
}

Task<> ResponseWriter::wait_closed() {
  while (true) co_await io::sleep_for(std::chrono::hours(1));
}

void ResponseWriter::when_closed(std::function<void()>) {}

struct Server::Impl {
  Impl(io::Executor e, Handler h, ServerLimits l)
      : executor(e), handler(std::move(h)), limits(l), tasks(e), changed(e) {
    // Often enough for the smallest limit, and no more than once a second for the usual ones.
    auto smallest = std::min({limits.head_timeout, limits.idle_timeout, limits.write_timeout,
                              limits.body_timeout, limits.body_credit});
    ticks.interval =
        std::clamp<io::Duration>(smallest / 4, std::chrono::milliseconds(5), std::chrono::seconds(1));
  }

  static Task<> serve_connection(Impl* self, io::Socket socket);
  static Task<> sweep(Impl* self);
  Connection* most_dispensable();
  Task<> wait_for_room();
  Task<> wait_until_empty();
  void notify();

  io::Executor executor;
  Handler handler;
  ServerLimits limits;
  Ticks ticks;
  io::Duration frozen{};  // what `ticks` is behind the clock
  io::TaskGroup tasks;
  std::list<Connection*> connections;
  std::list<io::Acceptor*> acceptors;
  io::Event changed;  // a connection ended
  bool sweeping = false;
  bool closing = false;
};

namespace {

// Membership in a list for as long as a frame lives, however it ends.
template <class T>
class Listed {
 public:
  Listed(std::list<T*>& list, T& item) : list_(list), at_(list.insert(list.end(), &item)) {}
  ~Listed() { list_.erase(at_); }
  Listed(const Listed&) = delete;

 private:
  std::list<T*>& list_;
  typename std::list<T*>::iterator at_;
};

}  // namespace

Server::Server(io::Executor executor, Handler handler, ServerLimits limits)
    : impl_(std::make_unique<Impl>(std::move(executor), std::move(handler), limits)) {}
Server::~Server() = default;

size_t Server::connections() const { return impl_->connections.size(); }

void Server::Impl::notify() {
  changed.set();
  changed.reset();
}

Task<> Server::Impl::serve_connection(Impl* self, io::Socket socket) {
  Connection connection(std::move(socket), self->handler, self->limits, self->ticks);
  {
    Listed listed(self->connections, connection);
    if (self->closing) connection.stop();
    co_await connection.run();
  }
  self->notify();
}

// The only timer of a server, and only while it has connections: an idle process sleeps.
Task<> Server::Impl::sweep(Impl* self) {
  while (!self->connections.empty()) {
    auto from = std::chrono::steady_clock::now();
    co_await io::sleep_for(self->ticks.interval);
    auto now = std::chrono::steady_clock::now();
    // Much too late: this process was frozen. Whoever talks to it must not pay for that.
    if (now - from > self->ticks.interval + io::kLateBySlice) self->frozen += now - from;
    self->ticks.now = now - self->frozen;
    for (Connection* connection : self->connections) {
      connection->sweep(self->ticks.now);
    }
  }
  self->sweeping = false;
}

// Nobody waits in a backlog here: when all places are taken, one that can be missed leaves, or the new one.
void Server::adopt(io::Socket socket) {
  if (impl_->connections.size() >= impl_->limits.max_connections) {
    Connection* leaves = impl_->most_dispensable();
    if (!leaves) return;
    leaves->evict();
  }
  impl_->ticks.now = std::chrono::steady_clock::now() - impl_->frozen;
  impl_->tasks.spawn(Impl::serve_connection(impl_.get(), std::move(socket)));
  if (impl_->sweeping) return;
  impl_->sweeping = true;
  impl_->tasks.spawn(Impl::sweep(impl_.get()));
}

// The connection that can be missed most: one that was answered, else the one that has been waiting for a
// request or the rest of its head for longest. One that was just accepted has not: it would be the wrong one
// when strangers send halves of heads. None when all are busy.
Connection* Server::Impl::most_dispensable() {
  Connection* found = nullptr;
  for (Connection* c : connections) {
    if (c->use() == Connection::Use::answered) return c;  // the list is ordered by age, about
    if (c->use() == Connection::Use::busy) continue;
    if (!found || c->since() < found->since()) found = c;
  }
  return found;
}

// When all are busy, one waits here and the others in the backlog.
Task<> Server::Impl::wait_for_room() {
  while (connections.size() >= limits.max_connections) {
    if (Connection* leaves = most_dispensable()) leaves->evict();
    co_await changed.wait();
  }
}

Task<> Server::serve(Fd listener) {
  Impl& impl = *impl_;
  io::Acceptor acceptor(impl.executor, std::move(listener));
  Listed listed(impl.acceptors, acceptor);
  while (!impl.closing) {
    auto socket = co_await acceptor.accept();
    if (socket) {
      co_await impl.wait_for_room();
      adopt(std::move(*socket));
      continue;
    }
    if (socket.error().code == Code::cancelled) break;
    log::warn("accept failed", {{"error", socket.error().message}});
    co_await io::sleep_for(
        std::chrono::milliseconds(100));  // out of descriptors, most likely: trying at once would spin
  }
}

Task<> Server::close(io::Duration grace) {
  Impl& impl = *impl_;
  impl.closing = true;
  for (io::Acceptor* acceptor : impl.acceptors) acceptor->close();
  for (Connection* connection : impl.connections) connection->stop();
  if (!impl.connections.empty() && grace > io::Duration::zero()) {
    co_await io::race(impl.wait_until_empty(), io::sleep_for(grace));
  }
  co_await impl.tasks.close();
}

Task<> Server::Impl::wait_until_empty() {
  while (!connections.empty()) co_await changed.wait();
}

}  // namespace osb::http
