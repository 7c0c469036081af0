#include "execd/session_routes.h"

#include "execd/directories.h"
#include "execd/paths.h"

namespace osb::execd {

void SessionRoutes::add_to(http::Router& router) {
  using http::Request;
  using http::ResponseWriter;
  router.add("POST", "/session", [this](Request& q, ResponseWriter& r) { return create(q, r); });
  router.add("POST", "/session/{id}/run", [this](Request& q, ResponseWriter& r) { return run(q, r); });
  router.add("DELETE", "/session/{id}", [this](Request& q, ResponseWriter& r) { return remove(q, r); });
}

io::Task<std::expected<std::string, ApiError>> ensure_cwd(const Core& core, Workers& workers,
                                                          std::string text) {
  if (text.empty()) co_return core.cwd;
  auto path = resolve_path(text, core.command_env(), core.cwd);
  if (!path) co_return std::unexpected(bad_request("cwd: " + path.error().message));
  auto made = co_await workers.run(core.identity, [path = *path] { return make_directories(path); });
  if (!made) co_return std::unexpected(ApiError{500, codes::kRuntimeError, "cwd: " + made.error().message});
  co_return std::move(*path);
}

io::Task<> SessionRoutes::create(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::is_object, {"cwd"});
  if (!body) co_return co_await reply_error(response, body.error());
  json::Issues issues;
  auto wanted = json::Field::root(*body, issues, "body", json::Reading::exact)["cwd"].string().value_or("");
  if (!issues.empty()) co_return co_await reply_error(response, first_issue(issues));
  auto cwd = co_await ensure_cwd(core_, workers_, wanted);
  if (!cwd) co_return co_await reply_error(response, cwd.error());
  if (core_.ended || sessions_.size() >= kMaxSessions) {
    std::string why = core_.ended ? "the sandbox has ended" : "there are too many sessions; delete some";
    co_return co_await reply_error(response, {500, codes::kRuntimeError, why});
  }
  auto session = BashSession::create(core_, std::move(*cwd));
  if (!session)
    co_return co_await reply_error(response, {500, codes::kRuntimeError, session.error().message});
  std::string id = (*session)->id();
  sessions_.emplace(id, std::move(*session));
  co_await reply_json(response, "{\"session_id\":\"" + id + "\"}");
}

io::Task<> SessionRoutes::run(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::invalid, {"command", "cwd", "timeout"});
  if (!body) co_return co_await reply_error(response, body.error());
  json::Issues issues;
  json::Field root = json::Field::root(*body, issues, "body", json::Reading::exact);
  SessionRun wanted{root["command"].string().value_or(""), root["cwd"].string().value_or(""),
                    milliseconds(root["timeout"].integer().value_or(0))};
  if (wanted.code.empty()) root["command"].complain("missing", "must not be empty");
  if (wanted.timeout.count() < 0) root["timeout"].complain("greater_than_equal", "must not be negative");
  if ((wanted.code + wanted.cwd).find('\0') != std::string::npos) {
    root["command"].complain("value_error", "must not contain NUL bytes");
  }
  if (!issues.empty()) co_return co_await reply_error(response, first_issue(issues));
  auto found = sessions_.find(request.params["id"]);
  if (found == sessions_.end()) {
    co_return co_await reply_error(
        response, {500, codes::kRuntimeError, "session " + request.params["id"] + " is not known"});
  }
  auto run = found->second->run(std::move(wanted));
  // Unlike a command, a session's run ends with its client.
  response.when_closed([run] { run->cancel(); });
  co_await run->decided.wait();
  if (run->refusal.empty()) {
    if (co_await send_events(run->events, response) == Delivery::client_gone) run->cancel();
  } else {
    co_await reply_error(response, bad_request(run->refusal));
  }
  response.when_closed(nullptr);
}

bool SessionRoutes::destroy(const std::string& id) {
  auto found = sessions_.find(id);
  if (found == sessions_.end()) return false;
  found->second->destroy();
  sessions_.erase(found);
  return true;
}

io::Task<> SessionRoutes::remove(http::Request& request, http::ResponseWriter& response) {
  if (destroy(request.params["id"])) co_return co_await reply_empty(response);
  co_await reply_error(response,
                       {404, codes::kContextNotFound, "session " + request.params["id"] + " is not known"});
}

}  // namespace osb::execd
