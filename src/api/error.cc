#include "api/error.h"

#include "json/escape.h"

namespace osb::api {
namespace {

void member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (out.size() > 1) out.push_back(',');
  json::append_string(out, name);
  out.push_back(':');
  json::append_string(out, value);
}

// People who use a client library see `message` and nothing else, so it says what to do as well. Programs
// find that in `remedy`.
std::string sentence(const ApiError& error) {
  if (error.remedy.empty()) return error.message;
  std::string out = error.message;
  if (out.ends_with('.')) out.pop_back();
  return out + "; " + error.remedy;
}

}  // namespace

std::string to_json(const ApiError& error, std::string_view request_id) {
  std::string out = "{";
  member(out, "code", error.code);
  member(out, "message", sentence(error));
  member(out, "cause", error.cause);
  member(out, "remedy", error.remedy);
  member(out, "requestId", request_id);
  if (!error.detail.empty()) out.append(",\"detail\":").append(error.detail);
  return out + "}";
}

}  // namespace osb::api
