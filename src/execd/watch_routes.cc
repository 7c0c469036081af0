#include "execd/watch_routes.h"

#include <fcntl.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/clock.h"
#include "execd/events.h"
#include "execd/file_watch.h"
#include "execd/paths.h"
#include "execd/reply.h"
#include "io/descriptor.h"
#include "io/socket.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

constexpr auto kPingInterval = std::chrono::seconds(15);

io::Task<> wait_for_events(io::asio::posix::stream_descriptor& fd) {
  std::ignore = co_await io::wait_readable(fd);
}

io::Task<> watch(Core& core, Workers& workers, http::Request& request, http::ResponseWriter& response) {
  http::Query query(request.head.query());
  std::string wanted = query.get("path").value_or("");
  if (wanted.empty()) {
    co_return co_await reply_error(response,
                                   bad_request("the query parameter path is missing", codes::kMissingQuery));
  }
  auto path = resolve_path(wanted, core.env, core.cwd);
  if (!path) co_return co_await reply_error(response, bad_request(path.error().message));
  auto below = query.get("recursive") == "true" ? FileWatch::Below::yes : FileWatch::Below::no;
  auto watch =
      co_await workers.run(core.identity, [path = *path, below] { return FileWatch::create(path, below); });
  if (!watch) co_return co_await reply_error(response, ApiError(watch.error()));

  io::asio::posix::stream_descriptor readable(core.executor);
  // A copy: both close what they have.
  auto taken = io::assign(readable, Fd(::fcntl(watch->fd(), F_DUPFD_CLOEXEC, 3)));
  if (!taken) co_return co_await reply_error(response, ApiError(taken.error()));

  http::Headers headers{
      {"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  if (!co_await response.start(200, std::move(headers), std::nullopt)) co_return;
  std::string ready = "{\"type\":\"ready\",\"path\":";
  json::append_string(ready, *path);
  ready += ",\"timestamp\":" + std::to_string(epoch_ms()) + "}\n\n";
  if (!co_await response.write(ready)) co_return;
  for (bool gone = false; !gone;) {
    std::string events;
    if (co_await io::race(wait_for_events(readable), io::sleep_for(kPingInterval)) == 1) {
      events::append_ping(events, epoch_ms());
    } else {
      events = watch->read_events(epoch_ms(), gone);
    }
    if (!events.empty() && !co_await response.write(events)) co_return;
  }
  co_await response.finish();
}

}  // namespace

void add_watch_route(http::Router& router, Core& core, Workers& workers) {
  router.add("GET", "/files/watch", [&core, &workers](http::Request& q, http::ResponseWriter& r) {
    return watch(core, workers, q, r);
  });
}

}  // namespace osb::execd
