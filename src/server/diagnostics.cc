#include "server/diagnostics.h"

#include <fmt/format.h>

#include "json/escape.h"

namespace osb::server {

std::string events_text(const std::vector<store::SandboxEvent>& events) {
  if (events.empty()) return "(no events)";
  std::string out;
  for (const store::SandboxEvent& event : events) {
    fmt::format_to(std::back_inserter(out), "{} {:<8} {}\n", format_api_time(event.at), event.kind,
                   event.detail);
  }
  return out;
}

std::string inspect_text(const store::Sandbox& row, std::string_view runtime) {
  std::string out;
  auto line = [&out](std::string_view name, std::string_view value) {
    if (!value.empty()) fmt::format_to(std::back_inserter(out), "{:<14}{}\n", name, value);
  };
  line("id", row.id);
  line("runtime", runtime);
  line("state", to_string(row.status.state));
  line("reason", row.status.reason);
  line("message", row.status.message);
  line("since", format_api_time(row.status.changed));
  line("created", format_api_time(row.created));
  line("expires", row.expires ? format_api_time(*row.expires) : "never");
  line("image", row.image);
  line("platform", row.platform);
  line("entrypoint", row.entrypoint);
  line("limits", row.limits);
  line("environment", row.env_names + " (values are not kept)");
  line("metadata", row.metadata);
  return out;
}

std::string logs_text() { return "(no logs)"; }

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
