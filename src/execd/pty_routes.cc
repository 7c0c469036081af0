#include "execd/pty_routes.h"

#include "execd/command_request.h"
#include "execd/pty_connection.h"
#include "execd/session_routes.h"

namespace osb::execd {

void PtyRoutes::add_to(http::Router& router) {
  using http::Request;
  using http::ResponseWriter;
  router.add("POST", "/pty", [this](Request& q, ResponseWriter& r) { return create(q, r); });
  router.add("GET", "/pty/{id}", [this](Request& q, ResponseWriter& r) { return status(q, r); });
  router.add("DELETE", "/pty/{id}", [this](Request& q, ResponseWriter& r) { return remove(q, r); });
  router.add("GET", "/pty/{id}/ws", [this](Request& q, ResponseWriter& r) { return connect(q, r); });
}

io::Task<PtyRoutes::SessionPtr> PtyRoutes::find(http::Request& request, http::ResponseWriter& response) {
  auto found = sessions_.find(request.params["id"]);
  if (found != sessions_.end()) co_return found->second;
  co_await reply_error(response,
                       {404, codes::kContextNotFound, "terminal " + request.params["id"] + " is not known"});
  co_return nullptr;
}

io::Task<> PtyRoutes::create(http::Request& request, http::ResponseWriter& response) {
  auto body =
      co_await read_json(request, EmptyBody::is_object, {"cwd", "command", "argv", "envs", "uid", "gid"});
  if (!body) co_return co_await reply_error(response, body.error());
  json::Issues issues;
  json::Field root = json::Field::root(*body, issues, "body", json::Reading::exact);
  auto wanted = root["cwd"].string().value_or(""), command = root["command"].string().value_or("");
  if (command.find('\0') != command.npos)
    root["command"].complain("value_error", "must not contain NUL bytes");
  auto argv = root["argv"].string_list();
  if (!issues.empty()) co_return co_await reply_error(response, first_issue(issues));
  // Words go before a line for the shell: clients that know both send both, for daemons that know only one.
  std::optional<CommandSpec> program;
  if (argv && !argv->empty()) {
    body->as_object().erase("command");
    auto spec = decode_command(*body, core_);
    if (!spec) co_return co_await reply_error(response, spec.error());
    program = std::move(*spec);
  }
  auto cwd = co_await ensure_cwd(core_, workers_, wanted);
  if (!cwd) co_return co_await reply_error(response, cwd.error());
  if (sessions_.size() >= kMaxSessions) {
    co_return co_await reply_error(response,
                                   {500, codes::kRuntimeError, "there are too many terminals; delete some"});
  }
  auto session = std::make_shared<PtySession>(core_, std::move(*cwd), std::move(command), std::move(program));
  sessions_.emplace(session->id(), session);
  co_await reply_json(response, "{\"session_id\":\"" + session->id() + "\"}", 201);
}

io::Task<> PtyRoutes::status(http::Request& request, http::ResponseWriter& response) {
  auto session = co_await find(request, response);
  if (!session) co_return;
  co_await reply_json(response, "{\"session_id\":\"" + session->id() +
                                    "\",\"running\":" + (session->running() ? "true" : "false") +
                                    ",\"output_offset\":" + std::to_string(session->output_offset()) + "}");
}

io::Task<> PtyRoutes::remove(http::Request& request, http::ResponseWriter& response) {
  auto session = co_await find(request, response);
  if (!session) co_return;
  sessions_.erase(session->id());
  session->destroy();
  co_await reply_empty(response);
}

io::Task<> PtyRoutes::connect(http::Request& request, http::ResponseWriter& response) {
  auto session = co_await find(request, response);
  if (!session) co_return;
  PtyConnect wanted = parse_pty_connect(http::Query(request.head.query()));
  if (session->holder() && (!wanted.takeover || !http::wants_websocket(request.head))) {
    co_return co_await reply_error(response, {409, codes::kAlreadyConnected,
                                              "another client is attached; add takeover=1 to replace it"});
  }
  co_await serve_pty(core_, std::move(session), wanted, request, response);
}

}  // namespace osb::execd
