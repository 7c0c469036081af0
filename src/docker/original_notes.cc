#include "docker/original_notes.h"

#include "json/decode.h"

namespace osb::docker {
namespace {

namespace bj = boost::json;
using Map = std::map<std::string, std::string>;

std::optional<Map> map_in(const bj::value& value) {
  json::Issues issues;
  auto map = json::Field::root(value, issues, "metadata", json::Reading::exact).string_map();
  return issues.empty() ? map : std::nullopt;
}

std::optional<WallTime> moment_in(const bj::value& value) {
  json::Issues issues;
  auto text = json::Field::root(value, issues, "expiration", json::Reading::lenient)["expires_at"].string();
  auto moment = text ? parse_time(*text) : Result<WallTime>(fail(Code::not_found, ""));
  return moment ? std::optional(*moment) : std::nullopt;
}

}  // namespace

OriginalNote parse_note(std::string_view metadata, std::string_view expiration) {
  OriginalNote out;
  if (auto value = json::parse(metadata); value && value->is_object()) out.metadata = map_in(*value);
  if (auto value = json::parse(expiration); value && value->is_object()) out.expires = moment_in(*value);
  return out;
}

std::string print_notes(const OriginalNotes& notes) {
  bj::object out;
  for (const auto& [id, note] : notes) {
    bj::object one;
    if (note.metadata) {
      bj::object map;
      for (const auto& [name, value] : *note.metadata) map[name] = value;
      one["metadata"] = std::move(map);
    }
    if (note.expires) one["expires_us"] = note.expires->time_since_epoch().count();
    out[id] = std::move(one);
  }
  return json::print(out);
}

Result<OriginalNotes> parse_notes(std::string_view text) {
  auto value = json::parse(text);
  if (!value || !value->is_object()) return fail(Code::corrupt, "what root has read makes no sense");
  OriginalNotes out;
  for (const auto& member : value->get_object()) {
    OriginalNote note;
    if (!member.value().is_object()) return fail(Code::corrupt, "what root has read makes no sense");
    const bj::object& one = member.value().get_object();
    if (const auto* map = one.if_contains("metadata")) note.metadata = map_in(*map);
    if (const auto* moment = one.if_contains("expires_us"); moment && moment->is_int64())
      note.expires = WallTime(std::chrono::microseconds(moment->get_int64()));
    out.emplace(member.key(), std::move(note));
  }
  return out;
}

void apply_note(const OriginalNotes& notes, runtime::Inherited& sandbox) {
  auto found = notes.find(sandbox.id);
  if (found == notes.end()) return;
  if (found->second.metadata) sandbox.metadata = *found->second.metadata;
  if (found->second.expires) sandbox.expires = found->second.expires;
}

}  // namespace osb::docker
