#include "execd/knocks.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "base/clock.h"
#include "base/knock.h"
#include "base/log.h"
#include "base/strings.h"
#include "execd/joined.h"

namespace osb::execd {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);
constexpr int kSecretPatience = 60'000;  // milliseconds; who starts the container has it at hand
// Whoever has not said anything yet. The longest silent one gives way: the server speaks at once, and a
// crowd of strangers must not keep it out.
constexpr size_t kMostStrangers = 64;

struct Door {
  Door(Core& core_, std::string secret_, Receivers receivers_)
      : core(core_), secret(std::move(secret_)), receivers(std::move(receivers_)) {}
  Core& core;
  std::string secret;
  Receivers receivers;
  std::list<io::Socket> strangers;
};
using DoorPtr = std::shared_ptr<Door>;

// What was asked for, and what was said so far, for the answer to it.
struct Heard {
  knock::Wish wish;
  std::string challenge, request;
};

io::Task<Result<Heard>> hear(DoorPtr door, io::Socket& socket) {
  std::string challenge = knock::new_challenge();
  CO_TRY(co_await io::write_all(socket, std::string_view(challenge)));
  std::string request(knock::kRequest, '\0');
  CO_TRY(co_await read_exactly(socket, request));
  auto wish = knock::read_request(door->secret, challenge, request);
  if (!wish) co_return fail(Code::permission_denied, "it does not have the secret");
  co_return Heard{*wish, std::move(challenge), std::move(request)};
}

io::Task<> let_in(DoorPtr door, io::Socket socket, Heard heard) {
  bool for_port = heard.wish.kind == knock::Kind::port;
  auto inside = for_port ? co_await connect_inside(heard.wish.port) : fail(Code::not_found, "none is wanted");
  bool open = inside || !for_port;
  std::string said = knock::answer(door->secret, heard.challenge, heard.request, open);
  auto sent = co_await io::with_deadline(kPatience, "answer", io::write_all(socket, std::string_view(said)));
  if (!sent || !open) co_return;
  if (inside) {
    co_await join(std::move(socket), std::move(*inside));
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

Result<std::string> take_secret(int input) {
  std::string secret(knock::kSecret, '\0');
  for (size_t have = 0; have < secret.size();) {
    pollfd ready{input, POLLIN, 0};
    if (::poll(&ready, 1, kSecretPatience) == 0) return fail(Code::timeout, "nobody sends the secret");
    ssize_t got = ::read(input, secret.data() + have, secret.size() - have);
    if (got <= 0) return fail(Code::corrupt, "nobody has sent the secret");
    have += static_cast<size_t>(got);
  }
  if (!knock::is_secret(secret)) return fail(Code::corrupt, "this is no secret");
  Fd null = TRY(open_at(AT_FDCWD, "/dev/null", O_RDONLY));
  if (::dup2(null.get(), input) < 0) return fail_errno("dup2");
  return secret;
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
