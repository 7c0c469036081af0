#include "execd/knocks.h"

#include <fcntl.h>

#include <algorithm>
#include <list>

#include "base/clock.h"
#include "base/knock.h"
#include "base/log.h"
#include "base/strings.h"
#include "io/socket.h"

namespace osb::execd {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kConnectDeadline = std::chrono::seconds(10);
// Whoever has not said anything yet. The longest silent one gives way: the server speaks at once, and a
// crowd of strangers must not keep it out.
constexpr size_t kMostStrangers = 64;
constexpr size_t kBuffer = 16 * 1024;

struct Door {
  Door(Core& core_, std::string secret_, Receivers receivers_)
      : core(core_), secret(std::move(secret_)), receivers(std::move(receivers_)) {}
  Core& core;
  std::string secret;
  Receivers receivers;
  std::list<io::Socket> strangers;
};
using DoorPtr = std::shared_ptr<Door>;

// Exactly so many: what follows belongs to whoever gets the connection.
io::Task<Result<std::string>> read_exactly(io::Socket& socket, size_t size) {
  std::string out(size, '\0');
  for (size_t have = 0; have < size;) {
    size_t got = CO_TRY(co_await io::read_some(socket, {out.data() + have, size - have}));
    if (got == 0) co_return fail(Code::unavailable, "it has gone");
    have += got;
  }
  co_return out;
}

struct Pair {
  Pair(const io::Executor& executor, io::Socket a_, io::Socket b_)
      : a(std::move(a_)), b(std::move(b_)), over(executor) {}
  io::Socket a, b;
  int ended = 0;
  io::Event over;
};

// A direction that came to its end lets the other one go on.
io::Task<> move(std::shared_ptr<Pair> pair, io::Socket& from, io::Socket& to) {
  auto buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
  while (true) {
    auto got = co_await io::read_some(from, {buffer.get(), kBuffer});
    if (!got) co_return;
    if (*got == 0) break;
    if (!co_await io::write_all(to, std::string_view(buffer.get(), *got))) co_return;
  }
  boost::system::error_code ignored;
  to.shutdown(io::Socket::shutdown_send, ignored);
  if (++pair->ended == 2) pair->over.set();
  co_await pair->over.wait();
}

io::Task<> join(std::shared_ptr<Pair> pair) {
  co_await io::race(move(pair, pair->a, pair->b), move(pair, pair->b, pair->a));
}

// Most programs listen on 127.0.0.1 or everywhere; some only on ::1.
io::Task<std::optional<io::Socket>> connect_inside(uint16_t port) {
  for (const char* address : {"127.0.0.1", "::1"}) {
    auto socket = co_await io::with_deadline(kConnectDeadline, "connect", io::connect_tcp(address, port));
    if (socket) co_return std::move(*socket);
  }
  co_return std::nullopt;
}

// What was asked for, and what was said so far, for the answer to it.
struct Heard {
  knock::Wish wish;
  std::string challenge, request;
};

io::Task<Result<Heard>> hear(DoorPtr door, io::Socket& socket) {
  std::string challenge = knock::new_challenge();
  CO_TRY(co_await io::write_all(socket, std::string_view(challenge)));
  std::string request = CO_TRY(co_await read_exactly(socket, knock::kRequest));
  auto wish = knock::read_request(door->secret, challenge, request);
  if (!wish) co_return fail(Code::permission_denied, "it does not have the secret");
  co_return Heard{*wish, std::move(challenge), std::move(request)};
}

io::Task<> let_in(DoorPtr door, io::Socket socket, Heard heard) {
  std::optional<io::Socket> inside;
  if (heard.wish.kind == knock::Kind::port) inside = co_await connect_inside(heard.wish.port);
  bool open = inside || heard.wish.kind != knock::Kind::port;
  std::string said = knock::answer(door->secret, heard.challenge, heard.request, open);
  auto sent = co_await io::with_deadline(kPatience, "answer", io::write_all(socket, std::string_view(said)));
  if (!sent || !open) co_return;
  if (inside) {
    co_await join(std::make_shared<Pair>(door->core.executor, std::move(socket), std::move(*inside)));
  } else if (heard.wish.kind == knock::Kind::control) {
    door->receivers.control(std::move(socket));
  } else {
    door->receivers.api(std::move(socket));
  }
}

void send_away(std::list<io::Socket>& strangers) {
  auto oldest = std::ranges::find_if(strangers, [](const io::Socket& one) { return one.is_open(); });
  boost::system::error_code ignored;
  if (oldest != strangers.end()) oldest->close(ignored);
}

io::Task<> greet(DoorPtr door, std::list<io::Socket>::iterator stranger) {
  auto heard = co_await io::with_deadline(kPatience, "a connection", hear(door, *stranger));
  io::Socket socket = std::move(*stranger);
  door->strangers.erase(stranger);
  if (heard) co_await let_in(door, std::move(socket), std::move(*heard));
}

}  // namespace

Result<std::string> read_secret(const std::string& path) {
  Fd file = TRY(open_at(AT_FDCWD, path, O_RDONLY));
  std::string text = TRY(read_all(file.get(), 2 * knock::kSecret));
  std::string_view secret = trim(text);
  if (!knock::is_secret(secret)) return fail(Code::corrupt, path + " has no secret in it");
  return std::string(secret);
}

io::Task<> answer_knocks(Core& core, Fd listener, std::string secret, Receivers receivers) {
  io::Acceptor acceptor(core.executor, std::move(listener));
  auto door = std::make_shared<Door>(core, std::move(secret), std::move(receivers));
  while (true) {
    auto socket = co_await acceptor.accept();
    if (socket) {
      if (door->strangers.size() >= kMostStrangers) send_away(door->strangers);
      door->strangers.push_back(std::move(*socket));
      core.tasks.spawn(greet(door, std::prev(door->strangers.end())));
    } else if (socket.error().code == Code::exhausted) {
      co_await io::sleep_for(milliseconds(100));
    } else {
      if (socket.error().code != Code::cancelled)
        log::error("nobody is let in any more", {{"reason", socket.error().message}});
      co_return;
    }
  }
}

}  // namespace osb::execd
