#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "base/strings.h"
#include "cli/mcp_inside.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Steady = std::chrono::steady_clock;

// A model reads it: more would not help, and a program can write without an end.
constexpr size_t kMaxOutput = 4 << 20;
constexpr auto kSnapshotLook = std::chrono::milliseconds(100);

int64_t now_ms() {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// What a run said, in the form of the published clients.
struct Execution {
  bj::array output, errors, results;
  std::string id;
  size_t size = 0;
  bool cut = false;
  Steady::time_point began = Steady::now();

  // A command's output has a message for each line, without its end, as the published clients give it.
  void take(StreamEvent event, bool lines) {
    if (lines && event.text.ends_with('\n')) event.text.pop_back();
    if (event.kind == StreamEvent::Kind::started) id = event.text;
    bool is_result = event.kind == StreamEvent::Kind::result,
         is_error = event.kind == StreamEvent::Kind::errors;
    if (!is_result && !is_error && event.kind != StreamEvent::Kind::output) return;
    size += event.text.size();
    cut = cut || size > kMaxOutput;
    if (cut) return;
    bj::object message{{"text", event.text}, {"timestamp", now_ms()}};
    if (!is_result) message["is_error"] = is_error;
    (is_result ? results : is_error ? errors : output).push_back(std::move(message));
  }

  bj::value finish(const StreamEvent& last) {
    bj::object out{{"id", id},
                   {"execution_count", nullptr},
                   {"result", std::move(results)},
                   {"error", nullptr},
                   {"complete", nullptr},
                   {"exit_code", nullptr},
                   {"logs", bj::object{{"stdout", std::move(output)}, {"stderr", std::move(errors)}}}};
    if (last.kind == StreamEvent::Kind::failed) {
      out["error"] = bj::object{{"name", last.name.empty() ? "CommandExecError" : last.name},
                                {"value", last.text},
                                {"timestamp", now_ms()},
                                {"traceback", bj::array(last.traceback.begin(), last.traceback.end())}};
      if (auto code = parse_number<int>(last.text)) out["exit_code"] = *code;
    } else {
      auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - began);
      out["complete"] = bj::object{{"timestamp", now_ms()}, {"execution_time_in_millis", took.count()}};
      out["exit_code"] = 0;
    }
    if (cut) out["truncated"] = "the output is longer than 4 MiB; write it to a file and read parts of it";
    return out;
  }
};

Task<Result<bj::value>> run_command(Api& api, std::string id, McpArguments arguments) {
  CommandRequest what{
      .argv = {}, .workdir = arguments["working_directory"].string().value_or(""), .timeout = {}};
  what.line = arguments["command"].required_string();
  what.background = arguments["background"].boolean().value_or(false);
  CO_TRY(arguments.ok());
  Execution execution;
  what.started = [&](const std::string& started) { execution.id = started; };
  bool background = what.background;
  OutputSink sink = [&](const StreamEvent& event) -> Result<void> {
    execution.take(event, true);
    return {};
  };
  auto last = CO_TRY(co_await api.run(id, std::move(what), sink));
  bj::value out = execution.finish(last);
  if (background) out.as_object()["exit_code"] = nullptr;  // it goes on
  co_return out;
}

Task<Result<bj::value>> run_cell(Api& api, std::string id, McpArguments arguments) {
  std::string code = arguments["code"].required_string();
  std::string language = arguments["language"].string().value_or("python");
  CO_TRY(arguments.ok());
  Execution execution;
  OutputSink sink = [&](const StreamEvent& event) -> Result<void> {
    execution.take(event, false);
    return {};
  };
  auto last = CO_TRY(co_await api.run_code(id, std::move(language), std::move(code), sink));
  bj::value out = execution.finish(last);
  out.as_object()["exit_code"] = nullptr;
  co_return out;
}

Task<Result<bj::value>> metrics_of(Api& api, std::string id) {
  auto answer =
      CO_TRY(co_await api.ask("GET", fmt::format("/sandboxes/{}/proxy/44772/metrics", percent_encode(id))));
  if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
  static constexpr std::pair<const char*, const char*> kNames[] = {{"cpu_count", "cpu_count"},
                                                                   {"cpu_used_pct", "cpu_used_percentage"},
                                                                   {"mem_total_mib", "memory_total_in_mib"},
                                                                   {"mem_used_mib", "memory_used_in_mib"},
                                                                   {"timestamp", "timestamp"}};
  bj::object out;
  for (auto [theirs, ours] : kNames)
    if (const auto* value = answer.as_object().if_contains(theirs)) out[ours] = *value;
  co_return out;
}

}  // namespace

Task<Result<bj::value>> mcp_program_call(Api api, std::string id, std::string tool, McpArguments arguments) {
  if (tool == "command_run") co_return co_await run_command(api, id, arguments);
  if (tool == "code_run") co_return co_await run_cell(api, id, arguments);
  if (tool == "sandbox_get_metrics") co_return co_await metrics_of(api, id);
  if (tool == "command_interrupt") {
    std::string execution = arguments["execution_id"].required_string();
    CO_TRY(arguments.ok());
    CO_TRY(co_await api.interrupt_command(id, execution));
    co_return bj::object{{"status", "interrupted"}};
  }
  if (tool == "sandbox_get_endpoint") {
    int64_t port = arguments["port"].required_integer();
    if (port < 1 || port > 65535) arguments["port"].complain("value_error", "a port is from 1 to 65535");
    CO_TRY(arguments.ok());
    co_return CO_TRY(
        co_await api.ask("GET", fmt::format("/v1/sandboxes/{}/endpoints/{}", percent_encode(id), port)));
  }
  auto pong = co_await api.text(fmt::format("/sandboxes/{}/proxy/44772/ping", percent_encode(id)));
  co_return bj::object{{"sandbox_id", id}, {"healthy", pong.has_value()}};
}

Task<Result<bj::value>> take_snapshot(Api& api, std::string target, std::string body) {
  auto answer = CO_TRY(co_await api.ask("POST", std::move(target), std::move(body)));
  for (;;) {
    if (!answer.is_object()) co_return fail(Code::corrupt, "the answer is no object");
    std::string id = CO_TRY(text_of(answer.as_object(), "id"));
    json::Issues ignored;
    auto status = json::Field::root(answer, ignored, "snapshot")["status"];
    std::string state = status["state"].string().value_or("");
    if (state == "Ready")
      co_return bj::object{
          {"snapshot_id", id}, {"image", "opensandbox-snapshots:" + id}, {"status", "ready"}};
    if (state != "Creating")
      co_return fail(Code::internal, "the snapshot failed: " + status["message"].string().value_or(""));
    co_await io::sleep_for(kSnapshotLook);
    answer = CO_TRY(co_await api.ask("GET", "/v1/snapshots/" + percent_encode(id)));
  }
}

}  // namespace osb::cli
