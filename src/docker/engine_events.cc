#include "docker/engine_events.h"

#include <boost/json.hpp>

#include "base/strings.h"
#include "docker/engine.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr auto kOpenLimit = std::chrono::seconds(10);
constexpr size_t kMostLine = 1 << 20, kMostRefusal = 64 << 10;

}  // namespace

Task<Result<EngineEvent>> EventStream::next() {
  while (true) {
    if (size_t end = text_.find('\n'); end != text_.npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      if (trim(line).empty()) continue;
      auto event = CO_TRY(parse_event(line));
      if (event.kind != EngineEvent::Kind::other) co_return event;
      continue;
    }
    if (text_.size() > kMostLine) co_return fail(Code::corrupt, "the engine's events have no lines");
    char piece[4096];
    auto got = co_await link_.connection.body().read_some(piece);
    if (!got) co_return std::unexpected(link_.cause(std::move(got.error())));
    if (*got == 0) co_return fail(Code::unavailable, "the engine has ended its events");
    text_.append(piece, *got);
  }
}

Task<Result<Link>> Engine::open_events(std::string path) {
  http::RequestHead head{"GET", std::move(path), true, {}};
  head.headers.set("Host", "docker");
  Link link = CO_TRY(co_await connect());
  http::ClientConnection& connection = link.connection;
  auto asked = co_await connection.send_head(std::move(head), 0);
  if (!asked) co_return std::unexpected(link.cause(std::move(asked.error())));
  auto answer = co_await connection.read_head();
  if (!answer) co_return std::unexpected(link.cause(std::move(answer.error())));
  if (answer->status < 300) co_return link;
  auto body = CO_TRY(co_await http::read_all(connection.body(), kMostRefusal));
  co_return std::unexpected(refusal(answer->status, body));
}

Task<Result<EventStream>> Engine::events(std::optional<std::string> label) {
  boost::json::object filters{{"type", boost::json::array{"container"}},
                              {"event", boost::json::array{"pause", "unpause", "die", "destroy"}}};
  if (label) filters["label"] = boost::json::array{*label};
  std::string path = CO_TRY(co_await prefix()) + "/events?filters=" + percent_encode(json::print(filters));
  auto link = co_await io::with_deadline(kOpenLimit, "the Docker engine", open_events(std::move(path)));
  if (link) co_return EventStream(std::move(*link));
  forget();
  co_return std::unexpected(std::move(link.error()));
}

}  // namespace osb::docker
