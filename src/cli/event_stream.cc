#include "cli/event_stream.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "base/strings.h"
#include "cli/values.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

constexpr size_t kMaxLine = 8 << 20;

// A result as plain text. Something that has none, like a picture, is named by its types.
std::string plain_text(const json::Field& results) {
  if (auto text = results["text/plain"].string()) return *text;
  if (auto text = results["text"].string()) return *text;
  std::string types;
  if (const auto* raw = results.raw(); raw && raw->is_object()) {
    for (const auto& [type, value] : raw->as_object())
      types += (types.empty() ? "" : ", ") + std::string(type);
  }
  return "<" + types + ">";
}

// Events of no interest here (ping, execution_count) give nothing.
Result<std::optional<StreamEvent>> parse_event(std::string_view line, EventParser::Source source) {
  auto value = TRY(json::parse(line));
  json::Issues issues;
  auto event = json::Field::root(value, issues, "event");
  auto type = event["type"].string();
  auto text = event["text"].string().value_or("");
  std::optional<StreamEvent> out;
  if (type == "stdout" || type == "stderr") {
    auto kind = type == "stdout" ? StreamEvent::Kind::output : StreamEvent::Kind::errors;
    // Of a command an empty line comes as "\n", every other one without its end.
    if (source == EventParser::Source::command && !text.ends_with('\n')) text += '\n';
    out = {kind, text, "", ""};
  } else if (type == "init") {
    out = {StreamEvent::Kind::started, text, "", ""};
  } else if (type == "result" && source == EventParser::Source::cell) {
    out = {StreamEvent::Kind::result, plain_text(event["results"]), "", ""};
    for (const char* kind : {"image/png", "image/jpeg"})
      if (auto picture = event["results"][kind].string(); picture && out->picture.base64.empty())
        out->picture = {kind, *picture};
  } else if (type == "execution_complete") {
    out = {StreamEvent::Kind::complete, "", "", ""};
  } else if (type == "error") {
    auto error = event["error"];
    auto lines = error["traceback"].string_list().value_or(std::vector<std::string>{});
    out = {StreamEvent::Kind::failed, error["evalue"].string().value_or(""),
           lines.empty() ? "" : lines.back(), error["ename"].string().value_or("")};
    out->traceback = std::move(lines);
  } else if (!type && event["code"].present()) {  // a failure after the head of the answer was out
    auto message = event["message"].string().value_or("");
    out = {StreamEvent::Kind::failed, message, message, ""};
  }
  if (!issues.empty()) {
    const auto& issue = issues.list().front();
    return fail(Code::corrupt, fmt::format("{}: {}", json::to_string(issue.path), issue.message));
  }
  return out;
}

// The words for signals that execd uses; in a shell's numbers.
constexpr std::pair<std::string_view, int> kSignals[] = {
    {"hangup", SIGHUP},
    {"interrupt", SIGINT},
    {"quit", SIGQUIT},
    {"illegal instruction", SIGILL},
    {"trace/breakpoint trap", SIGTRAP},
    {"aborted", SIGABRT},
    {"bus error", SIGBUS},
    {"floating point exception", SIGFPE},
    {"killed", SIGKILL},
    {"user defined signal 1", SIGUSR1},
    {"segmentation fault", SIGSEGV},
    {"user defined signal 2", SIGUSR2},
    {"broken pipe", SIGPIPE},
    {"alarm clock", SIGALRM},
    {"terminated", SIGTERM},
    {"bad system call", SIGSYS},
    {"cpu time limit exceeded", SIGXCPU},
    {"file size limit exceeded", SIGXFSZ},
    {"virtual timer expired", SIGVTALRM},
    {"profiling timer expired", SIGPROF},
    {"i/o possible", SIGIO},
    {"power failure", SIGPWR},
    {"stack fault", SIGSTKFLT},
};

std::optional<int> signal_in(std::string_view detail) {
  constexpr std::string_view kPrefix = "signal: ";
  if (!detail.starts_with(kPrefix)) return std::nullopt;
  std::string words = to_lower(detail.substr(kPrefix.size()));
  for (const char* more : {" (core dumped)", ": "}) {  // and why it got it
    if (size_t end = words.find(more); end != std::string::npos) words.resize(end);
  }
  for (auto [name, number] : kSignals) {
    if (words == name) return number;
  }
  return parse_number<int>(words.starts_with("signal ") ? std::string_view(words).substr(7) : words);
}

}  // namespace

Result<std::vector<StreamEvent>> EventParser::feed(std::string_view bytes) {
  std::vector<StreamEvent> events;
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    line_.append(bytes.substr(0, end));
    if (line_.size() > kMaxLine)
      return fail(Code::too_large, "a line of the event stream is longer than 8 MiB");
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    if (!trim(line_).empty()) {
      auto event = parse_event(line_, source_);
      if (!event) return fail(Code::corrupt, "event stream: " + event.error().message);
      if (*event) events.push_back(std::move(**event));
    }
    line_.clear();
  }
  return events;
}

CommandEnd end_from(const StreamEvent& last, std::optional<std::chrono::milliseconds> limit,
                    std::chrono::milliseconds elapsed) {
  if (last.kind == StreamEvent::Kind::complete) return {};
  auto code = parse_number<int>(last.text);
  if (code && *code >= 0) {
    // Its own code needs no comment; that of a program which was killed for lack of memory does.
    bool imposed = last.detail.find(": out of memory") != std::string::npos;
    return {*code & 0xff, imposed ? "the command was ended: " + last.detail : ""};
  }
  auto signal = signal_in(last.detail);
  if (limit && elapsed >= *limit && signal == SIGKILL) {
    return {124,
            fmt::format("the command was killed: it ran longer than --timeout {}", print_duration(*limit))};
  }
  if (signal) return {128 + *signal, fmt::format("the command ended by {}", last.detail)};
  const std::string& words = last.detail.empty() ? last.text : last.detail;
  if (to_lower(words).find("no such file") != std::string::npos ||
      to_lower(words).find("not found") != std::string::npos) {
    return {127, words};
  }
  return {126, words.empty() ? "the command could not be started" : words};
}

}  // namespace osb::cli
