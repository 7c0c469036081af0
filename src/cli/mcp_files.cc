#include <fmt/format.h>

#include <boost/json/object.hpp>

#include "base/strings.h"
#include "cli/mcp_inside.h"
#include "cli/text_encoding.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

constexpr size_t kMaxFile = 16 << 20;

std::string files_target(std::string_view id, std::string_view route) {
  return fmt::format("/sandboxes/{}/proxy/44772{}", percent_encode(id), route);
}

std::string path_query(const std::vector<std::string>& paths) {
  std::string query;
  for (const std::string& path : paths) query += (query.empty() ? "?path=" : "&path=") + percent_encode(path);
  return query;
}

std::optional<TextEncoding> encoding_of(McpArguments arguments) {
  auto encoding = find_encoding(arguments["encoding"].string().value_or("utf-8"));
  if (!encoding) arguments["encoding"].complain("value_error", "the encodings are utf-8, latin-1 and base64");
  return encoding;
}

Task<Result<bj::value>> read_file(Api& api, std::string id, McpArguments arguments) {
  std::string path = arguments["path"].required_string();
  std::string range = arguments["range_header"].string().value_or("");
  auto encoding = encoding_of(arguments);
  if (range.find_first_of("\r\n") != range.npos || range.size() > 100)
    arguments["range_header"].complain("value_error", "a range is written as bytes=0-1023");
  CO_TRY(arguments.ok());
  std::string bytes = CO_TRY(co_await api.read_file(id, path, range, kMaxFile));
  std::string text = CO_TRY(to_text(std::move(bytes), *encoding));
  co_return bj::object{{"path", path}, {"content", text}};
}

Task<Result<bj::value>> write_file(Api& api, std::string id, McpArguments arguments) {
  UploadedFile file{.path = arguments["path"].required_string(),
                    .mode = static_cast<int>(arguments["mode"].integer().value_or(755)),
                    .owner = arguments["owner"].string().value_or(""),
                    .group = arguments["group"].string().value_or(""),
                    .bytes = ""};
  std::string content = arguments["content"].required_string();
  auto encoding = encoding_of(arguments);
  CO_TRY(arguments.ok());
  file.bytes = CO_TRY(to_bytes(std::move(content), *encoding));
  std::vector<UploadedFile> files;
  files.push_back(std::move(file));
  CO_TRY(co_await api.write_files(id, std::move(files)));
  co_return bj::object{{"status", "written"}};
}

std::vector<json::Field> entries_of(McpArguments arguments) {
  if (!arguments["entries"].present()) arguments["entries"].complain("missing", "Field required");
  return arguments["entries"].array().value_or(std::vector<json::Field>{});
}

bj::object permission_of(json::Field entry) {
  bj::object out{{"mode", entry["mode"].integer().value_or(755)}};
  if (auto owner = entry["owner"].string()) out["owner"] = *owner;
  if (auto group = entry["group"].string()) out["group"] = *group;
  return out;
}

Task<Result<bj::value>> replace(Api& api, std::string id, McpArguments arguments) {
  bj::object body;
  for (json::Field entry : entries_of(arguments)) {
    std::string path = entry["path"].required_string();
    body[path] = bj::object{{"old", entry["old_content"].required_string()},
                            {"new", entry["new_content"].required_string()}};
  }
  CO_TRY(arguments.ok());
  auto answer =
      CO_TRY(co_await api.ask("POST", files_target(id, "/files/replace?verbose=true"), json::print(body)));
  bj::array out;
  if (const auto* counts = answer.if_object()) {
    for (const auto& [path, one] : *counts) {
      const auto* count = one.is_object() ? one.as_object().if_contains("replacedCount") : nullptr;
      out.push_back(bj::object{{"path", path}, {"replaced_count", count ? *count : bj::value(0)}});
    }
  }
  co_return out;
}

}  // namespace

Task<Result<bj::value>> mcp_file_call(Api api, std::string id, std::string tool, McpArguments arguments) {
  if (tool == "file_read") co_return co_await read_file(api, id, arguments);
  if (tool == "file_write") co_return co_await write_file(api, id, arguments);
  if (tool == "file_replace_contents") co_return co_await replace(api, id, arguments);
  if (tool == "file_search") {
    std::string query = "?path=" + percent_encode(arguments["path"].required_string()) +
                        "&pattern=" + percent_encode(arguments["pattern"].required_string());
    CO_TRY(arguments.ok());
    co_return CO_TRY(co_await api.ask("GET", files_target(id, "/files/search" + query)));
  }
  if (tool == "file_delete" || tool == "file_delete_directories") {
    if (!arguments["paths"].present()) arguments["paths"].complain("missing", "Field required");
    auto paths = arguments["paths"].string_list().value_or(std::vector<std::string>{});
    CO_TRY(arguments.ok());
    std::string route = tool == "file_delete" ? "/files" : "/directories";
    CO_TRY(co_await api.ask("DELETE", files_target(id, route + path_query(paths))));
    co_return bj::object{{"status", "deleted"}};
  }
  if (tool == "file_move") {
    bj::array moves;
    for (json::Field entry : entries_of(arguments))
      moves.push_back(bj::object{{"src", entry["source"].required_string()},
                                 {"dest", entry["destination"].required_string()}});
    CO_TRY(arguments.ok());
    CO_TRY(co_await api.ask("POST", files_target(id, "/files/mv"), json::print(moves)));
    co_return bj::object{{"status", "moved"}};
  }
  bj::object made;
  for (json::Field entry : entries_of(arguments))
    made[entry["path"].required_string()] = permission_of(entry);
  CO_TRY(arguments.ok());
  CO_TRY(co_await api.ask("POST", files_target(id, "/directories"), json::print(made)));
  co_return bj::object{{"status", "created"}};
}

}  // namespace osb::cli
