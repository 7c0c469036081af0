#include "cli/api_error.h"

#include <fmt/format.h>

#include <cstdio>

#include "base/strings.h"
#include "json/decode.h"

namespace osb::cli {
namespace {

Code code_for(int status) {
  switch (status) {
    case 400:
    case 422:
      return Code::invalid_argument;
    case 401:
      return Code::unauthenticated;
    case 403:
      return Code::permission_denied;
    case 404:
      return Code::not_found;
    case 409:
      return Code::wrong_state;
    case 413:
      return Code::too_large;
    case 429:
    case 503:
      return Code::exhausted;
    case 501:
      return Code::unsupported;
    case 504:
      return Code::timeout;
    default:
      return Code::internal;
  }
}

std::string_view default_remedy(int status) {
  switch (status) {
    case 401:
      return "set OPEN_SANDBOX_API_KEY to the server's key, or give it with --api-key";
    case 429:
    case 503:
      return "try again in a moment";
    default:
      return "";
  }
}

// The server's words go to a terminal: no escape sequences, one line.
std::string printable(std::string_view text) {
  std::string out(trim(text));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return out;
}

}  // namespace

Error api_error(int status, std::string_view body) {
  constexpr size_t kShown = 200;
  std::string code = fmt::format("HTTP {}", status), message, cause, remedy(default_remedy(status)), request;
  if (auto value = json::parse(body); value && value->is_object()) {
    json::Issues ignored;
    auto root = json::Field::root(*value, ignored, "body");
    auto read = [&](const char* name, std::string& into) {
      if (auto text = root[name].string(); text && !text->empty()) into = printable(*text);
    };
    read("code", code);
    read("message", message);
    read("cause", cause);
    read("remedy", remedy);
    read("requestId", request);
    // It is in the message for people who see nothing else; here it has a line of its own.
    if (std::string end = "; " + remedy; message.ends_with(end)) message.resize(message.size() - end.size());
    // The server's own remedy is for programs: it names a header and the server's configuration.
    if (status == 401) remedy = default_remedy(status);
    // What /health says is wrong.
    const auto* checks = value->as_object().if_contains("checks");
    if (checks && checks->is_array() && !checks->as_array().empty()) {
      auto first = json::Field::root(checks->as_array().front(), ignored, "checks");
      message = "the server cannot do its work";
      cause = printable(first["cause"].string().value_or(""));
      remedy = printable(first["remedy"].string().value_or(""));
    }
  } else {
    message = printable(body.substr(0, kShown));
  }
  std::string out = message.empty() ? code : fmt::format("{}: {}", code, message);
  if (!cause.empty() && cause != message) out += "\n  cause: " + cause;
  if (!remedy.empty()) out += "\n  remedy: " + remedy;
  if (!request.empty() && status >= 500) out += "\n  request: " + request;
  return {code_for(status), 0, std::move(out)};
}

void print_error(std::string_view program, const Error& error) {
  fmt::print(stderr, "{}: {}\n", program, error.message);
}

}  // namespace osb::cli
