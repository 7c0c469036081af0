#include "execd/hooks.h"

#include <signal.h>

#include <algorithm>

#include "json/decode.h"

namespace osb::execd {
namespace {

constexpr size_t kMostHooks = 64;
// The longest sleep: a clock that was set is noticed after this time.
constexpr auto kLongestSleep = std::chrono::seconds(30);

Hook read_hook(const json::Field& field) {
  Hook hook;
  hook.argv = field["command"].string_list().value_or(std::vector<std::string>());
  if (hook.argv.empty()) field["command"].complain("missing", "must name a program");
  int64_t seconds = field["timeoutSeconds"].integer().value_or(kHookTimeout.count());
  if (seconds < 1 || seconds > 86400) field["timeoutSeconds"].complain("value_error", "is no time limit");
  hook.timeout = std::chrono::seconds(seconds);
  return hook;
}

// In short sleeps, because a wall clock may be set.
io::Task<> sleep_until(const Core& core, WallTime due) {
  for (WallTime now = wall_now(); now < due && !core.ended; now = wall_now())
    co_await io::sleep_for(std::min<std::chrono::microseconds>(due - now, kLongestSleep));
}

// How it ended, for people; "" when it ended well.
io::Task<std::string> run_once(Core& core, const Hook& hook, int output) {
  SpawnRequest request;
  request.argv = hook.argv;
  request.env = core.command_env().block();
  request.cwd = core.cwd;
  request.out = request.err = output;
  request.group = Group::session;
  request.credentials = core.identity;
  auto pid = spawn(std::move(request));
  if (!pid) co_return pid.error().message;
  auto over = std::make_shared<io::Event>(core.executor);
  auto how = std::make_shared<std::optional<ExitStatus>>();
  core.reaper.watch(*pid, [over, how](ExitStatus status) {
    *how = status;
    over->set();
  });
  bool late = co_await io::race(over->wait(), io::sleep_for(hook.timeout)) == 1 && !*how;
  if (late) {
    ::kill(-*pid, SIGKILL);  // it has not been reaped: the number is still its own
    co_await over->wait();
    co_return "time limit of " + std::to_string(hook.timeout.count()) + " s";
  }
  bool well = !(*how)->signalled() && (*how)->api_code() == 0;
  co_return well ? "" : (*how)->text();
}

}  // namespace

Result<Hooks> parse_hooks(std::string_view text) {
  Hooks hooks;
  if (text.empty()) return hooks;
  auto value = TRY(json::parse(text));
  json::Issues issues;
  json::Field root = json::Field::root(value, issues, "lifecycle");
  if (json::Field pre = root["preStart"]; pre.present()) hooks.pre_start = read_hook(pre);
  for (const json::Field& field : root["periodic"].array().value_or(std::vector<json::Field>())) {
    Hook hook = read_hook(field);
    hook.name = field["name"].required_string();
    auto schedule = Schedule::parse(field["schedule"].required_string());
    if (schedule) {
      hook.schedule = *schedule;
    } else {
      field["schedule"].complain("value_error", schedule.error().message);
    }
    hooks.periodic.push_back(std::move(hook));
  }
  if (hooks.periodic.size() > kMostHooks) root["periodic"].complain("too_long", "has too many hooks");
  if (issues.empty()) return hooks;
  const json::Issue& issue = issues.list().front();
  return fail(Code::invalid_argument, json::to_string(issue.path) + ": " + issue.message);
}

io::Task<> run_periodic(Core& core, Hook hook, std::shared_ptr<Fd> output, std::shared_ptr<EntryOutput> log) {
  while (!core.ended) {
    auto due = hook.schedule->next(wall_now());
    if (!due) co_return;
    co_await sleep_until(core, *due);
    if (core.ended) co_return;
    std::string how = co_await run_once(core, hook, output ? output->get() : -1);
    if (!how.empty() && !core.ended) log->note("hook " + hook.name + " failed: " + how);
  }
}

io::Task<> end_in_time(pid_t group, std::chrono::seconds timeout, std::shared_ptr<bool> ended) {
  co_await io::sleep_for(timeout);
  if (!*ended) ::kill(-group, SIGKILL);
}

}  // namespace osb::execd
