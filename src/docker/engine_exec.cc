// Programs in containers, and what goes in and out of them: an engine makes a connection of the request.

#include <boost/json.hpp>

#include "base/strings.h"
#include "docker/engine.h"
#include "docker/exec_stream.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr size_t kMostRefusal = 64 << 10;

std::string container_path(const std::string& container, std::string_view action) {
  return "/containers/" + percent_encode(container) + std::string(action);
}

}  // namespace

Task<Result<Link>> Engine::become_stream(Call call) {
  http::RequestHead head{call.method, call.path, true, std::move(call.headers)};
  head.headers.set("Host", "docker");
  head.headers.set("Content-Type", "application/json");
  head.headers.set("Connection", "Upgrade");
  head.headers.set("Upgrade", "tcp");
  Link link = CO_TRY(co_await connect());
  http::ClientConnection& connection = link.connection;
  auto asked = co_await connection.send_head(std::move(head), call.body.size());
  if (asked && !call.body.empty()) asked = co_await connection.write(call.body);
  if (!asked) co_return std::unexpected(link.cause(std::move(asked.error())));
  auto answer = co_await connection.read_head();
  if (!answer) co_return std::unexpected(link.cause(std::move(answer.error())));
  if (answer->status == 101) co_return link;
  auto body = CO_TRY(co_await http::read_all(connection.body(), kMostRefusal));
  if (answer->status < 300) co_return fail(Code::unsupported, "the engine makes no stream of it");
  co_return std::unexpected(refusal(answer->status, body));
}

Task<Result<std::unique_ptr<io::ForeignStream>>> Engine::stream(Call call) {
  call.path = CO_TRY(co_await prefix()) + call.path;
  auto link = co_await become_stream(std::move(call));
  if (!link && (link.error().code == Code::unavailable || link.error().code == Code::corrupt)) {
    version_.reset();  // as for every call that fails so
    co_return std::unexpected(away(std::move(link.error())));
  }
  if (!link) co_return std::unexpected(std::move(link.error()));
  co_return std::make_unique<ExecStream>(std::move(*link));
}

Task<Result<std::unique_ptr<io::ForeignStream>>> Engine::exec(std::string container,
                                                              std::vector<std::string> words,
                                                              std::string user) {
  boost::json::array command(words.begin(), words.end());
  boost::json::object body{{"AttachStdin", true},
                           {"AttachStdout", true},
                           {"AttachStderr", true},
                           {"Tty", false},
                           // The image's own may be gone by now.
                           {"WorkingDir", "/"},
                           {"Cmd", std::move(command)}};
  if (!user.empty()) body["User"] = std::move(user);
  auto text = CO_TRY(co_await ask_in_time(
      {.method = "POST", .path = container_path(container, "/exec"), .body = json::print(body)}));
  std::string id = CO_TRY(parse_created(text));
  co_return co_await stream({.method = "POST",
                             .path = "/exec/" + percent_encode(id) + "/start",
                             .body = R"({"Detach":false,"Tty":false})"});
}

Task<Result<std::unique_ptr<io::ForeignStream>>> Engine::attach_input(std::string container) {
  co_return co_await stream(
      {.method = "POST", .path = container_path(container, "/attach?stream=1&stdin=1")});
}

Task<Result<void>> Engine::unpack(std::string container, std::string directory, std::string archive) {
  Call call{.method = "PUT",
            .path = container_path(container, "/archive?path=" + percent_encode(directory)),
            .body = std::move(archive)};
  call.headers.set("Content-Type", "application/x-tar");
  CO_TRY(co_await ask_in_time(std::move(call)));
  co_return Result<void>();
}

}  // namespace osb::docker
