#include "cli/occasion_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/ids.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/block_on.h"
#include "cli/occasion.h"
#include "cli/serve.h"
#include "io/descriptor.h"
#include "io/socket.h"
#include "sys/process.h"

namespace osb::cli {
namespace {

using namespace std::chrono_literals;
namespace bj = json::bj;

constexpr int kBacklog = 128;
constexpr auto kStopTime = 30s;

struct Kept {
  OccasionPlace place;
  pid_t service = 0;
  Connection to;
  std::chrono::seconds idle;
};

uint16_t port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

// Known before it can fail: a record without a process says nothing.
int become_server(const Kept& kept, Fd lock, Fd listener, const Embedded& embedded) {
  auto written = write_own_record(kept.place.record(), kept.to.server.port, kept.to.api_key);
  if (!written) {
    print_error("osb", written.error());
    return 1;
  }
  lock.reset();
  // What the user's environment says about servers is for those of the user's own configuration.
  for (const char* name :
       {"OPENSANDBOX_SERVER_API_KEY", "OPENSANDBOX_INSECURE_SERVER", "SANDBOX_CONFIG_PATH"})
    ::unsetenv(name);
  ServeOptions options{.config = "",
                       .text = fmt::format("[server]\nhost = \"127.0.0.1\"\nport = {}\napi_key = \"{}\"\n"
                                           "[runtime]\ntype = \"native\"\n[native]\nstate_dir = \"{}\"\n",
                                           kept.to.server.port, kept.to.api_key, kept.place.state()),
                       .listener = listener.release()};
  return become_service(options, embedded);
}

std::chrono::seconds unused_for(const OccasionPlace& place) {
  struct stat info{};
  if (::stat(place.record().c_str(), &info) < 0) return 0s;
  return std::chrono::seconds(std::max<time_t>(0, ::time(nullptr) - info.st_mtime));
}

bool is_over(const bj::value& sandbox) {
  const auto* status = sandbox.as_object().if_contains("status");
  if (!status || !status->is_object()) return false;
  std::string state = text_of(status->as_object(), "state").value_or("");
  return state == "Terminated" || state == "Failed" || state == "Succeeded";
}

// What cannot be looked at counts as used.
bool has_users(const OccasionPlace& place) {
  auto alone = try_lock(place.users());
  return !alone || !*alone;
}

// Whether nobody would miss it now. A command that runs is a use, and so is a sandbox.
Task<bool> is_idle(const Kept& kept) {
  if (has_users(kept.place)) ::utimensat(AT_FDCWD, kept.place.record().c_str(), nullptr, 0);
  if (unused_for(kept.place) < kept.idle) co_return false;
  Api api(kept.to);
  auto sandboxes = co_await api.list();
  if (!sandboxes) co_return false;
  for (const bj::value& one : *sandboxes) {
    if (is_over(one)) continue;
    ::utimensat(AT_FDCWD, kept.place.record().c_str(), nullptr, 0);
    co_return false;
  }
  co_return true;
}

// Under the lock nobody finds it any more; the last look is there, too.
Task<bool> end_when_idle(const Kept& kept) {
  if (!co_await is_idle(kept)) co_return false;
  auto lock = try_lock(kept.place.lock());
  if (!lock || !*lock || has_users(kept.place) || unused_for(kept.place) < kept.idle) co_return false;
  ServiceRecord record{kept.service, start_of(kept.service)};
  if (!end_service(record, kStopTime)) co_return false;
  ::unlink(kept.place.record().c_str());
  co_return true;
}

Task<> until_readable(io::asio::posix::stream_descriptor& descriptor) {
  (void)co_await io::wait_readable(descriptor);
}
Task<> pause(std::chrono::milliseconds time) { co_await io::sleep_for(time); }

// Ends with the service: who started it takes the keeper's end for its end.
Task<int> watch(Kept kept, Fd service) {
  io::asio::posix::stream_descriptor ended(co_await io::asio::this_coro::executor);
  if (auto assigned = io::assign(ended, std::move(service)); !assigned) {
    print_error("osb", assigned.error());
    co_return 1;
  }
  auto look = std::clamp<std::chrono::milliseconds>(kept.idle / 10, 200ms, 20s);
  while (co_await io::race(until_readable(ended), pause(look)) != 0) {
    if (co_await end_when_idle(kept)) break;
  }
  co_return 0;
}

Result<int> keep(const OccasionOptions& options, const Embedded& embedded) {
  Fd lock(options.lock);
  if (::fcntl(lock.get(), F_SETFD, FD_CLOEXEC) < 0) return fail_errno("the lock");
  Kept kept{.place = TRY(occasion_place()), .to = {}, .idle = occasion_idle()};
  Fd listener = TRY(io::listen_tcp("127.0.0.1", 0, kBacklog));
  kept.to.server = {.host = "127.0.0.1", .port = port_of(listener.get()), .prefix = "", .tls = false};
  kept.to.api_key = new_hex_id();
  kept.service = ::fork();
  if (kept.service < 0) return fail_errno("fork");
  if (kept.service == 0) ::_exit(become_server(kept, std::move(lock), std::move(listener), embedded));
  lock.reset();
  listener.reset();
  Fd service = TRY(sys::open_pidfd(kept.service));
  return block_on(watch(std::move(kept), std::move(service)));
}

}  // namespace

int keep_occasion(const OccasionOptions& options, const Embedded& embedded) {
  auto status = keep(options, embedded);
  if (status) return *status;
  print_error("osb", status.error());
  return 1;
}

}  // namespace osb::cli
