#include "cli/server_command.h"

#include <fmt/format.h>

#include "base/strings.h"
#include "cli/api_error.h"
#include "cli/block_on.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

Task<int> finish(ServerCommand& command, Connection connection) {
  Api api(std::move(connection));
  auto status = co_await command.run(api);
  if (status) co_return *status;
  if (status.error().sys_errno == EPIPE) co_return 128 + 13;
  print_error("osb", status.error());
  // A word that cannot be read is a wrong command line, as for the parser.
  co_return status.error().code == Code::invalid_argument&& status.error().sys_errno == EINVAL ? 2 : 1;
}

std::string snake(std::string_view name) {
  std::string out;
  for (char c : name) {
    bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty()) out.push_back('_');
    out.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return out;
}

// Their members are names that somebody chose.
bool is_map_of_names(std::string_view name) {
  return name == "metadata" || name == "extensions" || name == "env" || name == "headers";
}

}  // namespace

int ServerCommand::execute() {
  auto connection = to.read();
  if (!connection) {
    print_error("osb", connection.error());
    return 1;
  }
  return block_on(finish(*this, std::move(*connection)));
}

CLI::Option* sandbox_argument(CLI::App& app, std::string& into) {
  return app.add_option("SANDBOX_ID", into, "the sandbox: its id, the beginning of it, or its name")
      ->required();
}

CLI::Option* repeatable(CLI::Option* option) {
  return option->take_all()->expected(1)->allow_extra_args(false);
}

std::string sandbox_path(const std::string& id, std::string_view rest) {
  return "/v1/sandboxes/" + percent_encode(id) + std::string(rest);
}

Task<Result<std::string>> reach(Api& api, std::string name) {
  std::string id = CO_TRY(co_await api.find(std::move(name)));
  CO_TRY(co_await api.unlock(id));
  co_return id;
}

Result<bj::object> key_values(const std::vector<std::string>& texts, std::string_view option) {
  bj::object out;
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    if (equals == text.npos || equals == 0)
      return std::unexpected(
          Error{Code::invalid_argument, EINVAL, fmt::format("{} takes KEY=VALUE", option)});
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return out;
}

bj::value in_snake_case(const bj::value& value) {
  if (const auto* array = value.if_array()) {
    bj::array out;
    for (const bj::value& one : *array) out.push_back(in_snake_case(one));
    return out;
  }
  const auto* object = value.if_object();
  if (!object) return value;
  bj::object out;
  for (const auto& [name, member] : *object)
    out[snake(name)] = is_map_of_names(name) ? member : in_snake_case(member);
  return out;
}

bj::object only(const bj::object& answer, std::initializer_list<const char*> names) {
  bj::object out;
  for (const char* name : names) {
    const bj::value* found = answer.if_contains(name);
    out[name] = found ? *found : bj::value();
  }
  return out;
}

bj::object sandbox_info(const bj::object& answer) {
  bj::value renamed = in_snake_case(answer);
  bj::object info =
      only(renamed.as_object(), {"id", "status", "entrypoint", "expires_at", "created_at", "image",
                                 "snapshot_id", "platform", "allocation", "metadata", "extensions"});
  if (auto* status = info["status"].if_object())
    *status = only(*status, {"state", "reason", "message", "last_transition_at"});
  if (auto* image = info["image"].if_object()) {
    const bj::value* uri = image->if_contains("uri");
    info["image"] = bj::object{{"image", uri ? *uri : bj::value()}, {"auth", nullptr}};
  }
  return info;
}

}  // namespace osb::cli
