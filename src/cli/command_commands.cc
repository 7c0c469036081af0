// `osb command`: programs and bash sessions in a sandbox, in the published client's words.

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>

#include "base/shell_words.h"
#include "base/strings.h"
#include "cli/scratch_sandbox.h"
#include "cli/server_command.h"
#include "cli/terminal.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Steady = std::chrono::steady_clock;
using After = CommandTree::After;

constexpr size_t kLogLimit = 80 << 20;  // more than a sandbox keeps of one command

// The words of the program: after "--", or behind the other arguments.
Result<std::vector<std::string>> program(const std::vector<std::string>& plain,
                                         const CommandTree::Words& words) {
  std::vector<std::string> all = plain;
  if (words) all.insert(all.end(), words->begin(), words->end());
  if (all.empty())
    return std::unexpected(Error{Code::invalid_argument, EINVAL, "no command; it comes after --"});
  return all;
}

// As the published client quotes: only what needs it. The line is what `command status` shows.
std::string line_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             std::string_view("@%+=:,./-_").find(static_cast<char>(c)) != std::string_view::npos;
    });
    out += (out.empty() ? "" : " ") + (plain ? word : quote_words({word}));
  }
  return out;
}

// Streams a command to our own outputs. 0 or 1 as the published client exits, or the command's own status.
// The first interrupt is passed on to the command.
struct Streaming {
  Api& api;
  Signals& signals;
  io::Event started;
  std::string sandbox = {}, command = {};
};

Task<> pass_interrupts(Streaming& stream) {
  co_await stream.signals.more_than(0);
  co_await io::race(stream.started.wait(), stream.signals.more_than(1));
  if (!stream.command.empty()) (void)co_await stream.api.interrupt_command(stream.sandbox, stream.command);
  co_await stream.signals.more_than(1);
}

Task<Result<int>> stream_command(Api& api, std::string sandbox, CommandRequest what, bool own_status) {
  auto executor = co_await io::asio::this_coro::executor;
  auto signals = CO_TRY(Signals::create(executor));
  Streaming stream{.api = api, .signals = signals, .started = io::Event(executor), .sandbox = sandbox};
  what.started = [&stream](const std::string& id) {
    stream.command = id;
    stream.started.set();
  };
  OutputSink sink = [&signals](const StreamEvent& event) {
    return write_event(event, signals, signals.count());
  };
  std::optional<Result<StreamEvent>> last;
  auto begun = Steady::now();
  auto limit = what.timeout;
  if (co_await io::race(store(&last, api.run(sandbox, std::move(what), sink)), pass_interrupts(stream)) == 1)
    co_return 128 + signals.first().value_or(0);
  if (!*last) co_return std::unexpected(last->error());
  auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begun);
  CommandEnd end = end_from(**last, limit, elapsed);
  if (!end.problem.empty()) fmt::print(stderr, "osb: {}\n", end.problem);
  if (end.status != 0 && end.problem.empty() && !own_status)
    fmt::print(stderr, "osb: the command ended with status {}\n", end.status);
  co_return own_status ? end.status : end.status == 0 ? 0 : 1;
}

struct Run : ServerCommand {
  std::string id, workdir, timeout;
  std::vector<std::string> plain;
  bool background = false, argv = false, own_status = false;

  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("COMMAND", plain, "the program and its words; better after --");
    app.add_flag("-d,--background", background, "do not wait for its end");
    app.add_option("-w,--workdir", workdir, "where it starts");
    app.add_option("-t,--timeout", timeout, "end it after this time: 30s, 5m");
    app.add_flag("--argv", argv, "without a shell in between");
    app.add_flag("--exit-code", own_status,
                 "exit with the command's own status, not with 1 for all failures");
    output.options(app, {"raw", "table", "json", "yaml"});
  }
  Task<Result<int>> run(Api& api) override {
    CommandRequest what{.argv = CO_TRY(program(plain, words)), .workdir = workdir, .timeout = std::nullopt};
    if (!timeout.empty()) what.timeout = CO_TRY(in_context("--timeout", parse_duration(timeout)));
    if (!background && output.given() && output.format() != "raw")
      co_return fail(Code::invalid_argument,
                     "a command in the foreground prints what it prints; -o is for --background");
    if (background && output.given() && output.format() == "raw")
      co_return fail(Code::invalid_argument, "with --background, -o is table, json or yaml");
    // As the published client does it: through the sandbox's shell, each word quoted.
    if (!argv) what.line = line_of(what.argv);
    std::string found = CO_TRY(co_await reach(api, id));
    if (!background) co_return co_await stream_command(api, found, std::move(what), own_status);
    what.background = true;
    std::string command;
    what.started = [&command](const std::string& id) { command = id; };
    auto last =
        CO_TRY(co_await api.run(found, std::move(what), [](const StreamEvent&) { return Result<void>(); }));
    if (last.kind != StreamEvent::Kind::complete || command.empty())
      co_return fail(Code::internal,
                     "the command did not start: " + (last.detail.empty() ? last.text : last.detail));
    output.made("Background Command Started",
                {{"execution_id", command}, {"sandbox_id", found}, {"mode", "background"}});
    co_return 0;
  }
};

// Commands about one that was started.
struct OfExecution : ServerCommand {
  std::string id, execution;
  void arguments(CLI::App& app) {
    sandbox_argument(app, id);
    app.add_option("EXECUTION_ID", execution, "what `osb command run -d` printed")->required();
  }
};

struct Status : OfExecution {
  void options(CLI::App& app) override {
    arguments(app);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    auto answer =
        CO_TRY(co_await api.ask("GET", api.execd(found, "/command/status/" + percent_encode(execution))));
    bj::value renamed = in_snake_case(answer);
    if (!renamed.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    bj::object status = only(renamed.as_object(),
                             {"id", "content", "running", "exit_code", "error", "started_at", "finished_at"});
    if (const auto* error = status["error"].if_string(); error && error->empty()) status["error"] = nullptr;
    output.record("Command Status", status);
    co_return 0;
  }
};

struct Logs : OfExecution {
  uint64_t cursor = 0;
  void options(CLI::App& app) override {
    arguments(app);
    app.add_option("--cursor", cursor, "only what came after it");
    output.options(app, {"table", "json", "yaml", "raw"});
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    std::string route = fmt::format("/command/{}/logs?cursor={}", percent_encode(execution), cursor);
    auto answer = CO_TRY(co_await api.fetch(api.execd(found, route), kLogLimit));
    auto next = parse_number<int64_t>(answer.head.headers.get("EXECD-COMMANDS-TAIL-CURSOR"));
    if (output.format() == "json" || output.format() == "yaml") {
      output.record("", {{"content", answer.body}, {"cursor", next ? bj::value(*next) : bj::value()}});
      co_return 0;
    }
    if (output.is_table()) fmt::print("--- Command Logs ---\n");
    fmt::print("{}{}", answer.body, output.is_table() ? "\n" : "");
    co_return 0;
  }
};

struct Interrupt : OfExecution {
  void options(CLI::App& app) override {
    arguments(app);
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.interrupt_command(found, execution));
    output.ok("Interrupted: " + execution);
    co_return 0;
  }
};

struct SessionCreate : ServerCommand {
  std::string id, workdir;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("-w,--workdir", workdir, "where it starts");
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    bj::object body;
    if (!workdir.empty()) body["cwd"] = workdir;
    auto answer = CO_TRY(co_await api.ask("POST", api.execd(found, "/session"), json::print(body)));
    if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    output.made("Session Created",
                {{"sandbox_id", found},
                 {"session_id", CO_TRY(text_of(answer.as_object(), "session_id"))},
                 {"working_directory", workdir.empty() ? bj::value() : bj::value(workdir)}});
    co_return 0;
  }
};

struct SessionRun : ServerCommand {
  std::string id, session, workdir, timeout;
  std::vector<std::string> plain;
  bool own_status = false;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("SESSION_ID", session, "what `osb command session create` printed")->required();
    app.add_option("COMMAND", plain, "the command and its words; better after --");
    app.add_option("-w,--workdir", workdir, "where it runs, and the session from then on");
    app.add_option("-t,--timeout", timeout, "end it after this time: 30s, 5m");
    app.add_flag("--exit-code", own_status,
                 "exit with the command's own status, not with 1 for all failures");
    output.options(app, {"raw"});
  }
  Task<Result<int>> run(Api& api) override {
    CommandRequest what{.argv = {}, .workdir = workdir, .timeout = std::nullopt};
    what.line = line_of(CO_TRY(program(plain, words)));
    what.session = session;
    if (!timeout.empty()) what.timeout = CO_TRY(in_context("--timeout", parse_duration(timeout)));
    co_return co_await stream_command(api, CO_TRY(co_await reach(api, id)), std::move(what), own_status);
  }
};

struct SessionDelete : ServerCommand {
  std::string id, session;
  void options(CLI::App& app) override {
    sandbox_argument(app, id);
    app.add_option("SESSION_ID", session, "what `osb command session create` printed")->required();
    output.options(app);
  }
  Task<Result<int>> run(Api& api) override {
    std::string found = CO_TRY(co_await reach(api, id));
    CO_TRY(co_await api.ask("DELETE", api.execd(found, "/session/" + percent_encode(session))));
    output.ok("Deleted session: " + session);
    co_return 0;
  }
};

}  // namespace

void add_command(CommandTree& tree) {
  CLI::App& command = tree.group("command", "run programs in a sandbox, also in the background");
  add_server_command<Run>(tree, command, "run", "run a program: osb command run ID -- PROGRAM...",
                          After::words);
  add_server_command<Status>(tree, command, "status", "whether a program in the background still runs");
  add_server_command<Logs>(tree, command, "logs", "what a program in the background wrote");
  add_server_command<Interrupt>(tree, command, "interrupt", "end a program");
  CLI::App& session = tree.group("session", "bash sessions that keep their state", &command);
  add_server_command<SessionCreate>(tree, session, "create", "begin a session");
  add_server_command<SessionRun>(tree, session, "run", "run a command in a session", After::words);
  add_server_command<SessionDelete>(tree, session, "delete", "end a session and what runs in it");
}

}  // namespace osb::cli
