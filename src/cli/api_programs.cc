// What Api does with programs in a sandbox, and with answers that go on.

#include <fmt/format.h>

#include <array>
#include <boost/json/object.hpp>

#include "base/shell_words.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;

constexpr auto kFirstByteTime = 30s;  // of a stream: it is answered at once
constexpr auto kFetchTime = 300s;
constexpr size_t kLineLimit = 16 << 20;

void add_ids(bj::object& body, const std::optional<std::pair<uint32_t, uint32_t>>& ids) {
  if (!ids) return;
  body["uid"] = ids->first;
  body["gid"] = ids->second;
}

void add_env(bj::object& body, const std::vector<Variable>& variables) {
  bj::object env;
  for (const auto& [name, value] : variables) env[name] = value;
  if (!env.empty()) body["envs"] = std::move(env);
}

}  // namespace

Task<Result<StreamEvent>> Api::run(std::string id, CommandRequest what, OutputSink sink) {
  bj::object body;
  if (what.line.empty())
    body["argv"] = bj::array(what.argv.begin(), what.argv.end());
  else
    body["command"] = what.line;
  if (!what.workdir.empty()) body["cwd"] = what.workdir;
  if (what.timeout) body["timeout"] = what.timeout->count();
  if (what.background) body["background"] = true;
  add_env(body, what.env);
  add_ids(body, what.ids);
  std::string route = what.session.empty() ? "/command" : "/session/" + percent_encode(what.session) + "/run";
  auto connection = CO_TRY(co_await io::with_deadline(kFirstByteTime, "start the command",
                                                      start_stream(execd(id, route), json::print(body))));
  OutputSink written = [&](const StreamEvent& event) -> Result<void> {
    if (event.kind != StreamEvent::Kind::started) return sink(event);
    if (what.started) what.started(event.text);
    return {};
  };
  co_return co_await follow(std::move(connection), EventParser(), written);
}

Task<Result<void>> Api::lines(std::string target, LineSink sink) {
  auto connection = CO_TRY(co_await io::with_deadline(kFirstByteTime, "read the answer",
                                                      start_stream(std::move(target), "", "GET")));
  std::array<char, 32768> buffer;
  std::string left;
  while (size_t n = CO_TRY(co_await connection.body().read_some(buffer))) {
    left.append(buffer.data(), n);
    size_t from = 0;
    for (size_t end; (end = left.find('\n', from)) != left.npos; from = end + 1)
      CO_TRY(sink(std::string_view(left).substr(from, end - from)));
    left.erase(0, from);
    if (left.size() > kLineLimit) co_return fail(Code::corrupt, "the answer has a line that does not end");
  }
  co_return Result<void>{};
}

Task<Result<void>> Api::egress_log(std::string id, bool follow, LineSink sink) {
  std::string target = "/v1/sandboxes/" + percent_encode(id) + "/egress/log" + (follow ? "?follow=true" : "");
  return lines(std::move(target), std::move(sink));
}

Task<Result<http::Response>> Api::fetch(std::string target, size_t limit) {
  auto connection = CO_TRY(co_await connect());
  auto answer = CO_TRY(co_await io::with_deadline(
      kFetchTime, "read the answer", http::fetch(connection, head("GET", std::move(target)), "", limit)));
  if (answer.head.status < 200 || answer.head.status > 299)
    co_return std::unexpected(api_error(answer.head.status, answer.body));
  co_return std::move(answer);
}

Task<Result<std::string>> Api::new_terminal(std::string id, ProgramRequest what) {
  bj::object body;
  if (!what.argv.empty()) body["argv"] = bj::array(what.argv.begin(), what.argv.end());
  // Also for daemons of sandboxes from before an upgrade, which know no words.
  std::string line = what.line.empty() ? quote_words(what.argv) : what.line;
  if (!line.empty()) body["command"] = line;
  if (!what.workdir.empty()) body["cwd"] = what.workdir;
  add_env(body, what.env);
  add_ids(body, what.ids);
  auto made = CO_TRY(co_await ask("POST", execd(id, "/pty"), json::print(body)));
  if (!made.is_object()) co_return fail(Code::corrupt, "the answer names no session");
  co_return text_of(made.as_object(), "session_id");
}

Task<Result<http::WebSocket>> Api::open_terminal(http::ClientConnection& connection, std::string id,
                                                 std::string session, std::string query) {
  std::string target = fmt::format("/pty/{}/ws?takeover=1{}", percent_encode(session), query);
  return http::connect_websocket(connection, head("GET", execd(id, target)));
}

Task<Result<void>> Api::upload_as_user(std::string id, UploadedFile file) {
  std::vector<UploadedFile> files;
  files.push_back(std::move(file));
  return send_files(execd(id, "/files/upload"), std::move(files));
}

}  // namespace osb::cli
