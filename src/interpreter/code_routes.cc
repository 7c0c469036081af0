#include "interpreter/code_routes.h"

#include <boost/json/object.hpp>

#include "base/strings.h"
#include "execd/command_request.h"
#include "execd/command_routes.h"
#include "execd/reply.h"
#include "execd/session_routes.h"
#include "json/decode.h"
#include "json/escape.h"

namespace osb::interpreter {
namespace {

namespace codes = execd::codes;
using execd::ApiError;
using execd::reply_error;

bool is_command(std::string_view language) {
  return language.empty() || language == "command" || language == "background-command";
}

void append_context(std::string& out, const Context& context) {
  out += "{\"id\":\"" + context.id() + "\",\"language\":";
  json::append_string(out, context.language());
  if (!context.cwd().empty()) {
    out += ",\"cwd\":";
    json::append_string(out, context.cwd());
  }
  if (context.ended()) {
    out += ",\"status\":\"dead\",\"reason\":";
    json::append_string(out, *context.ended());
  }
  out += "}";
}

ApiError runtime_error(const Error& error) { return {500, codes::kRuntimeError, error.message}; }

ApiError unknown_context(const std::string& id, int status) {
  return {status, codes::kContextNotFound, "code context " + id + " is not known"};
}

}  // namespace

void CodeRoutes::add_to(http::Router& router) {
  using http::Request;
  using http::ResponseWriter;
  router.add("POST", "/code", [this](Request& q, ResponseWriter& r) { return run(q, r); });
  router.add("POST", "/code/context", [this](Request& q, ResponseWriter& r) { return create(q, r); });
  router.add("GET", "/code/contexts", [this](Request& q, ResponseWriter& r) { return list(q, r); });
  router.add("DELETE", "/code/contexts", [this](Request& q, ResponseWriter& r) { return remove_all(q, r); });
  router.add("GET", "/code/contexts/{id}", [this](Request& q, ResponseWriter& r) { return show(q, r); });
  router.add("DELETE", "/code/contexts/{id}", [this](Request& q, ResponseWriter& r) { return remove(q, r); });
}

io::Task<> CodeRoutes::run(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await execd::read_json(request, execd::EmptyBody::invalid, {"code", "context"});
  if (!body) co_return co_await reply_error(response, body.error());
  json::Issues issues;
  json::Field root = json::Field::root(*body, issues, "body");
  std::string code = root["code"].string().value_or("");
  if (code.empty()) root["code"].complain("missing", "must not be empty");
  if (code.size() > kMaxCode)
    root["code"].complain("too_long", "must be at most 8 MiB; upload a file and import it");
  std::string id, language;
  if (root["context"].present()) {
    id = root["context"]["id"].string().value_or("");
    language = root["context"]["language"].string().value_or("");
  }
  if (!issues.empty()) co_return co_await reply_error(response, execd::first_issue(issues));

  if (id.empty() && is_command(language)) {
    co_return co_await run_command(std::move(code), language == "background-command", response);
  }
  Result<std::shared_ptr<Context>> context = nullptr;
  if (id.empty()) {
    context = contexts_.default_for(language);
    if (!context) co_return co_await reply_error(response, runtime_error(context.error()));
  } else {
    context = contexts_.find(id);
    if (!*context) co_return co_await reply_error(response, unknown_context(id, 500));
  }
  auto run = (*context)->run(std::move(code), (*context)->used() ? "" : take_notice());
  context->reset();  // a deleted context need not wait for a slow reader
  co_await execd::send_events(run->events, response);
}

// What the image has to say about itself: the entry process of the code interpreter puts it into the env file
// when it could not do as it was told.
std::string CodeRoutes::take_notice() {
  if (notice_taken_) return {};
  std::string notice = parts_.core.command_env().get("CODE_INTERPRETER_NOTICE");
  notice_taken_ = !notice.empty();
  return notice;
}

io::Task<> CodeRoutes::run_command(std::string code, bool background, http::ResponseWriter& response) {
  boost::json::object body{{"command", code}, {"background", background}};
  auto spec = execd::decode_command(body, parts_.core);
  if (!spec) co_return co_await reply_error(response, spec.error());
  if (parts_.core.ended)
    co_return co_await reply_error(response, {500, codes::kRuntimeError, "the sandbox has ended"});
  if (parts_.commands.full()) co_return co_await reply_error(response, execd::too_many_commands());
  auto command = parts_.commands.start(std::move(*spec));
  co_await execd::send_events(command->events(), response);
}

io::Task<bool> CodeRoutes::interrupt(std::string id) {
  auto context = contexts_.find(id);
  if (context) context->interrupt();
  co_return context != nullptr;
}

io::Task<> CodeRoutes::create(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await execd::read_json(request, execd::EmptyBody::is_object, {"language", "cwd"});
  if (!body) co_return co_await reply_error(response, body.error());
  json::Issues issues;
  json::Field root = json::Field::root(*body, issues, "body");
  std::string language = root["language"].string().value_or("");
  std::string cwd = root["cwd"].string().value_or("");
  if (language.empty()) root["language"].complain("missing", "must not be empty");
  if (!issues.empty()) co_return co_await reply_error(response, execd::first_issue(issues));
  if (!cwd.empty()) {
    auto made = co_await execd::ensure_cwd(parts_.core, parts_.workers, cwd);
    if (!made) co_return co_await reply_error(response, made.error());
    cwd = std::move(*made);
  }
  auto context = contexts_.create(language, std::move(cwd));
  if (!context) co_return co_await reply_error(response, runtime_error(context.error()));
  std::string text;
  append_context(text, **context);
  co_await execd::reply_json(response, std::move(text));
}

io::Task<> CodeRoutes::list(http::Request& request, http::ResponseWriter& response) {
  std::string language = http::Query(request.head.query()).get("language").value_or("");
  if (!language.empty() && (is_command(language) || language == "sql")) {
    co_return co_await reply_error(response,
                                   {500, codes::kRuntimeError, "there are no contexts of " + language});
  }
  std::string text = "[";
  for (const auto& context : contexts_.list(language)) {
    if (text.size() > 1) text += ',';
    append_context(text, *context);
  }
  co_await execd::reply_json(response, text + "]");
}

io::Task<> CodeRoutes::show(http::Request& request, http::ResponseWriter& response) {
  const std::string& id = request.params["id"];
  auto context = contexts_.find(id);
  if (!context) co_return co_await reply_error(response, unknown_context(id, 404));
  std::string text;
  append_context(text, *context);
  co_await execd::reply_json(response, std::move(text));
}

io::Task<> CodeRoutes::remove(http::Request& request, http::ResponseWriter& response) {
  const std::string& id = request.params["id"];
  if (contexts_.destroy(id)) co_return co_await execd::reply_empty(response);
  co_await reply_error(response, unknown_context(id, 404));
}

io::Task<> CodeRoutes::remove_all(http::Request& request, http::ResponseWriter& response) {
  std::string language = http::Query(request.head.query()).get("language").value_or("");
  if (language.empty()) {
    co_return co_await reply_error(
        response, execd::bad_request("the query parameter language is missing", codes::kMissingQuery));
  }
  for (const auto& context : contexts_.list(language)) contexts_.destroy(context->id());
  co_await execd::reply_empty(response);
}

}  // namespace osb::interpreter
