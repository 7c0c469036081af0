#include "execd/file_routes.h"

#include "base/strings.h"
#include "execd/command_request.h"
#include "execd/directories.h"
#include "execd/file_info.h"
#include "execd/file_ops.h"
#include "execd/paths.h"
#include "json/escape.h"

namespace osb::execd {
namespace {

using JsonOrError = std::expected<std::string, ApiError>;

// Jobs run on other threads: what they need of Core never changes while requests are served.
struct Paths {
  const Core* core;
  Result<std::string> resolve(std::string_view path) const {
    return resolve_path(path, core->env, core->cwd);
  }
};

struct Decoded {
  json::Issues issues;
  std::optional<ApiError> error() const {
    return issues.empty() ? std::nullopt : std::optional<ApiError>(first_issue(issues));
  }
};

// {"path": {...}, ...}
template <class Value, class Decode>
std::expected<std::vector<std::pair<std::string, Value>>, ApiError> decode_by_path(
    const boost::json::value& body, Decode decode) {
  Decoded decoded;
  std::vector<std::pair<std::string, Value>> out;
  auto members = json::Field::root(body, decoded.issues, "body", json::Reading::exact).object();
  if (!members && decoded.issues.empty())
    return std::unexpected(bad_request("body: must be an object of paths"));
  if (members) {
    for (const auto& [path, field] : *members) out.emplace_back(path, decode(field));
  }
  if (auto error = decoded.error()) return std::unexpected(*error);
  return out;
}

struct Replacement {
  std::string old_text, new_text;
};

}  // namespace

void FileRoutes::add(http::Router& router, const char* method, const std::string& path, Handler handler) {
  for (const char* prefix : {"", "/v1/filesystem/{uid}/{gid}"}) {
    router.add(method, prefix + path,
               [this, handler](http::Request& q, http::ResponseWriter& r) { return (this->*handler)(q, r); });
  }
}

void FileRoutes::add_to(http::Router& router) {
  add(router, "GET", "/files/info", &FileRoutes::info);
  add(router, "DELETE", "/files", &FileRoutes::remove_files);
  add(router, "POST", "/files/mv", &FileRoutes::move);
  add(router, "POST", "/files/permissions", &FileRoutes::permissions);
  add(router, "GET", "/files/search", &FileRoutes::search);
  add(router, "POST", "/files/replace", &FileRoutes::replace);
  add(router, "POST", "/files/upload", &FileRoutes::upload);
  add(router, "GET", "/files/download", &FileRoutes::download);
  add(router, "GET", "/directories/list", &FileRoutes::list);
  add(router, "POST", "/directories", &FileRoutes::make);
  add(router, "DELETE", "/directories", &FileRoutes::remove_directories);
}

std::expected<std::optional<Credentials>, ApiError> FileRoutes::identity(const http::Request& request) const {
  auto uid_text = request.params.find("uid"), gid_text = request.params.find("gid");
  if (uid_text == request.params.end() || gid_text == request.params.end()) return core_.identity;
  auto uid = parse_number<uint32_t>(uid_text->second), gid = parse_number<uint32_t>(gid_text->second);
  if (!uid || !gid || *uid == UINT32_MAX || *gid == UINT32_MAX) {
    return std::unexpected(bad_request("uid and gid must be numbers from 0 to 4294967294"));
  }
  return credentials_of(*uid, *gid);
}

io::Task<> FileRoutes::info(http::Request& request, http::ResponseWriter& response) {
  auto paths = http::Query(request.head.query()).all("path");
  co_await answer(request, response, [at = Paths{&core_}, paths]() -> JsonOrError {
    Users users = Users::load();
    std::string out = "{";
    for (const std::string& path : paths) {
      std::string resolved = TRY(at.resolve(path));
      struct stat info;
      if (::lstat(resolved.c_str(), &info) < 0) return fail_errno(resolved);
      if (out.size() > 1) out += ",";
      json::append_string(out, path);
      out += ":";
      append_file_info(out, resolved, info, users);
    }
    return out + "}";
  });
}

io::Task<> FileRoutes::remove_files(http::Request& request, http::ResponseWriter& response) {
  auto paths = http::Query(request.head.query()).all("path");
  co_await answer(request, response, [at = Paths{&core_}, paths]() -> JsonOrError {
    for (const std::string& path : paths) TRY(remove_file(TRY(at.resolve(path))));
    return "";
  });
}

io::Task<> FileRoutes::remove_directories(http::Request& request, http::ResponseWriter& response) {
  auto paths = http::Query(request.head.query()).all("path");
  co_await answer(request, response, [at = Paths{&core_}, paths]() -> JsonOrError {
    for (const std::string& path : paths) TRY(remove_tree(TRY(at.resolve(path))));
    return "";
  });
}

io::Task<> FileRoutes::move(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::invalid);
  if (!body) co_return co_await reply_error(response, body.error());
  Decoded decoded;
  std::vector<std::pair<std::string, std::string>> moves;
  auto items = json::Field::root(*body, decoded.issues, "body", json::Reading::exact).array();
  if (!items) co_return co_await reply_error(response, bad_request("body: must be an array of {src, dest}"));
  for (const json::Field& item : *items) {
    moves.emplace_back(item["src"].required_string(), item["dest"].required_string());
    if (moves.back().first.empty() || moves.back().second.empty())
      item.complain("value_error", "src and dest must not be empty");
  }
  if (auto error = decoded.error()) co_return co_await reply_error(response, *error);
  co_await answer(request, response, [at = Paths{&core_}, moves]() -> JsonOrError {
    for (const auto& [from, to] : moves) TRY(move_path(TRY(at.resolve(from)), TRY(at.resolve(to))));
    return "";
  });
}

io::Task<> FileRoutes::permissions(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::invalid);
  if (!body) co_return co_await reply_error(response, body.error());
  auto changes = decode_by_path<Permission>(*body, decode_permission);
  if (!changes) co_return co_await reply_error(response, changes.error());
  co_await answer(request, response, [at = Paths{&core_}, changes = *changes]() -> JsonOrError {
    for (const auto& [path, permission] : changes) {
      std::string resolved = TRY(at.resolve(path));
      struct stat info;
      if (::stat(resolved.c_str(), &info) < 0) return fail_errno(resolved);
      TRY(apply_permission(resolved, permission));
    }
    return "";
  });
}

io::Task<> FileRoutes::make(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::invalid);
  if (!body) co_return co_await reply_error(response, body.error());
  auto wanted = decode_by_path<Permission>(*body, decode_permission);
  if (!wanted) co_return co_await reply_error(response, wanted.error());
  co_await answer(request, response, [at = Paths{&core_}, wanted = *wanted]() -> JsonOrError {
    for (const auto& [path, permission] : wanted) {
      std::string resolved = TRY(at.resolve(path));
      // A directory that was there before keeps what it has.
      if (TRY(make_directories(resolved))) TRY(apply_permission(resolved, permission));
    }
    return "";
  });
}

io::Task<> FileRoutes::replace(http::Request& request, http::ResponseWriter& response) {
  auto body = co_await read_json(request, EmptyBody::invalid);
  if (!body) co_return co_await reply_error(response, body.error());
  auto wanted = decode_by_path<Replacement>(*body, [](const json::Field& field) {
    Replacement out{field["old"].string().value_or(""), field["new"].string().value_or("")};
    if (out.old_text.empty()) field["old"].complain("value_error", "must not be empty");
    return out;
  });
  if (!wanted) co_return co_await reply_error(response, wanted.error());
  // The counts are always sent: some clients ask for them in a query, one expects them without asking, none
  // minds.
  co_await answer(request, response, [at = Paths{&core_}, wanted = *wanted]() -> JsonOrError {
    std::string out = "{";
    for (const auto& [path, texts] : wanted) {
      uint64_t count = TRY(replace_in_file(TRY(at.resolve(path)), texts.old_text, texts.new_text));
      if (out.size() > 1) out += ",";
      json::append_string(out, path);
      out += ":{\"replacedCount\":" + std::to_string(count) + "}";
    }
    return out + "}";
  });
}

}  // namespace osb::execd
