#include "execd/command_routes.h"

#include "base/strings.h"
#include "execd/command_request.h"
#include "execd/reply.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

constexpr size_t kLogPiece = 256 * 1024;

std::string status_json(const Command& command) {
  std::string out = "{\"id\":\"" + command.id() + "\",\"content\":";
  json::append_string(out, command.content());
  out += command.running() ? ",\"running\":true" : ",\"running\":false";
  if (!command.running()) out += ",\"exit_code\":" + std::to_string(command.exit_code());
  if (!command.error_text().empty()) {
    out += ",\"error\":";
    json::append_string(out, command.error_text());
  }
  out += ",\"started_at\":\"" + format_time(command.started_at(), 6) + "\"";
  if (command.finished_at()) out += ",\"finished_at\":\"" + format_time(*command.finished_at(), 6) + "\"";
  if (command.use()) {
    auto cpu = std::chrono::duration_cast<milliseconds>(command.use()->cpu_time);
    out += ",\"wall_time_ms\":" + std::to_string(command.wall_time().count());
    out += ",\"cpu_time_ms\":" + std::to_string(cpu.count());
    out += ",\"peak_memory_bytes\":" + std::to_string(command.use()->peak_memory_bytes);
  }
  return out + "}";
}

}  // namespace

void CommandRoutes::add_to(http::Router& router) {
  using http::Request;
  using http::ResponseWriter;
  router.add("POST", "/command", [this](Request& q, ResponseWriter& r) { return run(q, r); });
  router.add("DELETE", "/command", [this](Request& q, ResponseWriter& r) { return interrupt(q, r); });
  router.add("DELETE", "/code", [this](Request& q, ResponseWriter& r) { return interrupt(q, r); });
  router.add("GET", "/command/status/{id}", [this](Request& q, ResponseWriter& r) { return status(q, r); });
  router.add("GET", "/command/{id}/logs", [this](Request& q, ResponseWriter& r) { return logs(q, r); });
}

ApiError too_many_commands() {
  return {503, codes::kUnavailable,
          std::to_string(Commands::kMaxRunning) + " commands run already; wait for some to end"};
}

io::Task<> CommandRoutes::run(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::invalid,
                                 {"command", "argv", "cwd", "background", "timeout", "uid", "gid", "envs"});
  if (!body) co_return co_await reply_error(response, body.error());
  auto spec = decode_command(*body, core_);
  if (!spec) co_return co_await reply_error(response, spec.error());
  if (core_.ended)
    co_return co_await reply_error(response, {500, codes::kRuntimeError, "the sandbox has ended"});
  if (commands_.full()) co_return co_await reply_error(response, too_many_commands());
  auto command = commands_.start(std::move(*spec));
  co_await send_events(command->events(), response);
}

io::Task<> CommandRoutes::interrupt(http::Request& request, http::ResponseWriter& response) {
  std::string id = http::Query(request.head.query()).get("id").value_or("");
  if (id.empty())
    co_return co_await reply_error(response,
                                   bad_request("the query parameter id is missing", codes::kMissingQuery));
  auto command = commands_.find(id);
  if (command && command->running()) {
    co_await Command::interrupt(command);
    co_return co_await reply_empty(response);
  }
  for (const Interrupt& other : others_) {
    if (co_await other(id)) co_return co_await reply_empty(response);
  }
  std::string why = command ? " has ended already" : " is not known";
  co_await reply_error(response, {500, codes::kRuntimeError, "nothing to interrupt: " + id + why});
}

io::Task<> CommandRoutes::status(http::Request& request, http::ResponseWriter& response) {
  auto command = commands_.find(request.params["id"]);
  if (command) co_return co_await reply_json(response, status_json(*command));
  co_await reply_error(response,
                       {404, codes::kInvalidBody, "command " + request.params["id"] + " is not known"});
}

io::Task<> CommandRoutes::logs(http::Request& request, http::ResponseWriter& response) {
  auto command = commands_.find(request.params["id"]);
  if (!command || command->mode() != Mode::background) {
    std::string why =
        command ? " was not started in the background: its output was streamed" : " is not known";
    co_return co_await reply_error(response, bad_request("command " + request.params["id"] + why));
  }
  auto given = http::Query(request.head.query()).get("cursor");
  int64_t cursor = given ? parse_number<int64_t>(*given).value_or(0) : 0;
  if (cursor < 0) co_return co_await reply_error(response, bad_request("cursor must not be negative"));
  // The end is fixed now: what is appended while this is sent belongs to the next call.
  const OutputLog& log = command->log();
  uint64_t at = static_cast<uint64_t>(cursor), end = std::max(log.size(), at);
  http::Headers headers{{"Content-Type", "text/plain; charset=utf-8"},
                        {"EXECD-COMMANDS-TAIL-CURSOR", std::to_string(end)}};
  if (at == end) co_return (void) co_await response.send(200, std::move(headers), "");
  // A reader who was away for too long goes on with the oldest that is left, and is told where that is.
  if (at < log.first()) {
    at = log.first();
    headers.add("EXECD-COMMANDS-HEAD-CURSOR", std::to_string(at));
  }
  // A command that writes faster than its reader reads may overtake it on the way: no length can be promised.
  bool may_shrink = log.size() >= OutputLog::kMostKept / 2;
  auto length = may_shrink ? std::nullopt : std::optional(end - at);
  if (!co_await response.start(200, std::move(headers), length)) co_return;
  while (at < end) {
    if (log.first() > at && may_shrink) at = log.first();
    if (at >= end) break;
    auto piece = log.read(at, static_cast<size_t>(std::min<uint64_t>(kLogPiece, end - at)));
    if (!piece || piece->empty() || log.first() > at) co_return response.abort();
    at += piece->size();
    if (!co_await response.write(*piece)) co_return;
  }
  co_await response.finish();
}

}  // namespace osb::execd
