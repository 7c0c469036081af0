#include "server/diagnostics.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "json/escape.h"
#include "json/string_lists.h"

namespace osb::server {

std::string events_text(const std::vector<sandbox::Event>& events) {
  if (events.empty()) return "(no events)";
  std::string out;
  for (const sandbox::Event& event : events) {
    fmt::format_to(std::back_inserter(out), "{} {:<8} {}\n", format_api_time(event.at), event.kind,
                   event.detail);
  }
  return out;
}

std::string inspect_text(const sandbox::Sandbox& row, const runtime::Runtime& runtime) {
  std::string out;
  auto line = [&out](std::string_view name, std::string_view value) {
    if (!value.empty()) fmt::format_to(std::back_inserter(out), "{:<14}{}\n", name, value);
  };
  line("id", row.id);
  line("runtime", runtime.name());
  line("state", to_string(row.status.state));
  line("reason", to_string(row.status.reason));
  line("message", row.status.message);
  line("since", format_api_time(row.status.changed));
  line("created", format_api_time(row.created));
  line("expires", row.expires ? format_api_time(*row.expires) : "never");
  line("image", row.image);
  line("platform", row.platform);
  line("entrypoint", json::list_text(row.entrypoint));
  line("limits", json::map_text(row.limits));
  line("environment", json::list_text(row.env_names) + " (values are not kept)");
  line("metadata", json::map_text(row.metadata));
  runtime::Isolation isolation = runtime.isolation();
  line("isolation", isolation.tier);
  for (const std::string& what : isolation.missing) line("  lacking", what);
  for (const auto& [name, ability] : runtime::abilities_of(runtime.capabilities())) {
    using Kind = runtime::Ability::Kind;
    if (ability.kind == Kind::yes) continue;
    line(ability.kind == Kind::no ? "  refused" : "  no effect", fmt::format("{}: {}", name, ability.why));
  }
  return out;
}

WallTime parse_since(std::string_view text, WallTime now) {
  constexpr std::chrono::seconds kDefault = std::chrono::minutes(10);
  text = trim(text);
  auto number = text.empty() ? std::nullopt : parse_number<int64_t>(text.substr(0, text.size() - 1));
  if (!number || *number < 0 || *number > 10'000'000) return now - kDefault;
  switch (text.back()) {
    case 's':
      return now - std::chrono::seconds(*number);
    case 'm':
      return now - std::chrono::minutes(*number);
    case 'h':
      return now - std::chrono::hours(*number);
    case 'd':
      return now - std::chrono::hours(24) * *number;
    default:
      return now - kDefault;
  }
}

Logs select_logs(const sandbox::Output& output, int64_t tail, std::optional<WallTime> since) {
  std::vector<std::string_view> lines;
  for (std::string_view line : split(output.text, '\n')) {
    if (line.empty()) continue;
    if (since) {
      auto at = parse_time(line.substr(0, line.find(' ')));
      if (at && *at < *since) continue;
    }
    lines.push_back(line);
  }
  Logs logs{.text = {}, .truncated = output.truncated};
  size_t most = static_cast<size_t>(tail);
  size_t first = lines.size() > most ? lines.size() - most : 0;
  logs.truncated |= first > 0;
  for (size_t i = first; i < lines.size(); ++i) logs.text.append(lines[i]).append("\n");
  if (logs.text.empty()) logs.text = "(no logs)";
  return logs;
}

std::string to_json(const InlineDiagnostics& d) {
  std::string out = "{\"sandboxId\":";
  json::append_string(out, d.sandbox_id);
  out.append(",\"kind\":\"").append(d.kind).append("\",\"scope\":\"").append(d.scope);
  out.append("\",\"delivery\":\"inline\",\"contentType\":\"text/plain; charset=utf-8\",\"content\":");
  json::append_string(out, d.content);
  fmt::format_to(std::back_inserter(out), ",\"contentLength\":{},\"truncated\":{}", d.content.size(),
                 d.truncated);
  if (!d.warning.empty()) {
    out.append(",\"warnings\":[");
    json::append_string(out, d.warning);
    out.push_back(']');
  }
  return out + "}";
}

}  // namespace osb::server
