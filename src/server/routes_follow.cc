// Waiting for changes: until one sandbox is in a state, or for whatever happens to any of them. Both read the
// store, so that nothing is told which is not there, and end when the client goes or the service stops.

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/follow.h"
#include "api/list_query.h"
#include "api/sandbox_json.h"
#include "base/log.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/routes.h"

namespace osb::server {
namespace {

using api::ApiResult;
using api::on_wire;
using Follower = ChangeFeed::Follower;

// Whatever stands between server and client sees that the stream lives.
constexpr auto kHeartbeat = std::chrono::seconds(15);
constexpr int64_t kAtOnce = 100;

// The client's side: the wait ends when it goes. Taken back before the follower is gone.
struct Leaving {
  Leaving(ResponseWriter& response, Follower& follower) : response_(response) {
    response_.when_closed([&follower] { follower.leave(); });
  }
  ~Leaving() { response_.when_closed(nullptr); }
  Leaving(const Leaving&) = delete;

 private:
  ResponseWriter& response_;
};

// Nothing more can come of it but its removal.
bool has_ended(sandbox::State state) {
  return state == sandbox::State::terminated || state == sandbox::State::failed;
}

Task<ApiResult<sandbox::SandboxPtr>> await_state(Service& service, sandbox::Principal who, std::string id,
                                                 api::WaitQuery query, Follower& follower) {
  auto until = std::chrono::steady_clock::now() + query.timeout;
  while (true) {
    follower.renew();
    sandbox::SandboxPtr row = CO_TRY(on_wire(co_await service.lifecycle.get(who, id)));
    bool late = follower.left() || std::chrono::steady_clock::now() >= until;
    if (late || query.wants(row->status.state) || has_ended(row->status.state)) co_return row;
    co_await follower.wait(until);
  }
}

Task<> wait_for_state(Service& service, Request& request, ResponseWriter& response) {
  auto query = api::decode_wait_query(request.head.query());
  if (!query) co_return co_await answer_error(request, response, std::move(query.error()));
  if (service.changes.full()) co_return co_await answer_error(request, response, api::too_many_followers());
  std::string id = request.params.find("id")->second;
  Follower follower(service.changes, id);
  ApiResult<sandbox::SandboxPtr> row;
  {
    Leaving leaving(response, follower);
    row = co_await await_state(service, caller_of(request), id, std::move(*query), follower);
  }
  if (!row) co_return co_await answer_error(request, response, std::move(row.error()));
  std::string body;
  api::append_sandbox(body, **row);
  co_await answer_json(response, 200, std::move(body));
}

// Where a stream begins: behind the last event that the client has, or now.
Task<ApiResult<int64_t>> first_number(Service& service, const Request& request) {
  auto given =
      CO_TRY(api::decode_last_event_id(request.head.headers.get("Last-Event-ID"), request.head.query()));
  if (given) co_return *given;
  auto newest = co_await service.store.newest_event();
  if (newest) co_return *newest;
  log::error("cannot read events", {{"error", newest.error().message}});
  co_return api::refuse(api::to_api_error(sandbox::internal_error(newest.error())));
}

// Until the client is gone or the service stops. A store that cannot be read ends it too: the client comes
// back with the last number it has.
Task<> send_events(Service& service, sandbox::Scope scope, int64_t number, Follower& follower,
                   ResponseWriter& response) {
  bool first = true;
  while (!follower.left()) {
    follower.renew();
    auto behind = co_await service.store.events_behind(scope, number, kAtOnce, service.clock.now());
    if (!behind) {
      log::error("cannot read events", {{"error", behind.error().message}});
      co_return;
    }
    std::string out;
    if (first && behind->gap) api::append_reset(out, number);
    first = false;
    for (const store::NumberedEvent& event : behind->events)
      api::append_event(out, {event.number, event.sandbox_id, event.event});
    number = behind->upto;
    if (!out.empty() && !co_await response.write(out)) co_return;
    if (static_cast<int64_t>(behind->events.size()) == kAtOnce) continue;
    auto beat = std::chrono::steady_clock::now() + kHeartbeat;
    co_await follower.wait(beat);
    if (follower.left() || std::chrono::steady_clock::now() < beat) continue;
    if (!co_await response.write(": the stream lives\n\n")) co_return;
  }
}

Task<> follow_events(Service& service, Request& request, ResponseWriter& response) {
  if (service.changes.full()) co_return co_await answer_error(request, response, api::too_many_followers());
  Follower follower(service.changes, "");
  auto number = co_await first_number(service, request);
  if (!number) co_return co_await answer_error(request, response, std::move(number.error()));
  http::Headers headers{{"Content-Type", "text/event-stream"},
                        {"Cache-Control", "no-store"},
                        {"X-Accel-Buffering", "no"}};  // a proxy in between is not to collect them
  if (!co_await response.start(200, std::move(headers), std::nullopt)) co_return;
  // The head goes out at once, with how soon to come back after a break.
  if (!co_await response.write("retry: 1000\n\n")) co_return;
  Leaving leaving(response, follower);
  co_await send_events(service, sandbox::Scope::of(caller_of(request)), *number, follower, response);
  std::ignore = co_await response.finish();
}

}  // namespace

void add_follow_routes(http::Router& router, Service& service) {
  for (std::string prefix : {"/v1", ""}) {
    router.add("GET", prefix + "/sandboxes/{id}/wait",
               [&service](Request& request, ResponseWriter& response) {
                 return wait_for_state(service, request, response);
               });
    router.add("GET", prefix + "/events", [&service](Request& request, ResponseWriter& response) {
      return follow_events(service, request, response);
    });
  }
}

}  // namespace osb::server
