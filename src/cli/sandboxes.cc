#include "cli/sandboxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/table.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using Row = std::vector<std::string>;

// Names of others end up on a terminal: control characters do not.
std::string clean(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// The time between two instants, whole seconds, never negative.
std::string between(WallTime from, WallTime to) {
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(to - from);
  return seconds.count() <= 0 ? "0s" : print_duration(seconds);
}

Row row_of(const bj::value& sandbox, WallTime now) {
  json::Issues ignored;
  auto field = json::Field::root(sandbox, ignored, "sandbox");
  auto image = field["image"]["uri"].string();
  auto source = image ? *image : "snapshot " + field["snapshotId"].string().value_or("?");
  auto created = parse_time(field["createdAt"].string().value_or(""));
  auto expires = field["expiresAt"].string();
  auto expiry = parse_time(expires.value_or(""));
  return {clean(field["id"].string().value_or("?")), clean(field["status"]["state"].string().value_or("?")),
          clean(source), created ? between(*created, now) : "?",
          !expires ? "never"
          : expiry ? between(now, *expiry)
                   : "?"};
}

// Of one that is not the server's standard.
std::string named_runtime(const bj::value& sandbox) {
  json::Issues ignored;
  auto field = json::Field::root(sandbox, ignored, "sandbox");
  return clean(field["extensions"]["opensandbox.extensions.runtime"].string().value_or(""));
}

// Its whole id.
Task<Result<std::string>> remove_by_name(Api& api, std::string name) {
  std::string id = CO_TRY(co_await api.find(std::move(name)));
  CO_TRY(co_await api.remove(id));
  co_return id;
}

}  // namespace

io::Task<ServerRuntimes> runtimes_of(Api& api) {
  ServerRuntimes out;
  auto health = co_await api.ask("GET", "/health");
  if (!health) co_return out;
  json::Issues ignored;
  auto root = json::Field::root(*health, ignored, "health");
  out.standard = clean(root["runtime"].string().value_or(""));
  out.several = root["runtimes"].string_list().value_or(std::vector<std::string>()).size() > 1;
  co_return out;
}

std::string runtime_of(const bj::value& sandbox, const ServerRuntimes& runtimes) {
  std::string named = named_runtime(sandbox);
  return named.empty() ? runtimes.standard : named;
}

std::string sandbox_table(const std::vector<bj::value>& sandboxes, WallTime now,
                          const ServerRuntimes& runtimes, Columns columns) {
  std::vector<Row> rows{{"ID", "STATE", "IMAGE", "AGE", "EXPIRES IN"}};
  for (const auto& sandbox : sandboxes) rows.push_back(row_of(sandbox, now));
  // Most servers have one; where there is a choice, the table says what was chosen.
  bool needed = runtimes.several || std::ranges::any_of(sandboxes, [](const bj::value& one) {
                  return !named_runtime(one).empty();
                });
  if (needed || columns == Columns::all) {
    rows[0].push_back("RUNTIME");
    for (size_t i = 0; i < sandboxes.size(); ++i) {
      std::string runtime = runtime_of(sandboxes[i], runtimes);
      rows[i + 1].push_back(runtime.empty() ? "?" : runtime);
    }
  }
  return print_table(rows);
}

io::Task<int> remove_sandboxes(RmOptions options) {
  Api api(options.connection);
  if (options.all) {
    auto found = co_await api.list();
    if (!found) {
      print_error("osb", found.error());
      co_return 1;
    }
    for (const auto& sandbox : *found) {
      if (auto id = text_of(sandbox.as_object(), "id")) options.ids.push_back(*id);
    }
  }
  int status = 0;
  for (const std::string& id : options.ids) {
    auto removed = co_await remove_by_name(api, id);
    if (removed) {
      fmt::print("{}\n", clean(*removed));
    } else if (options.all && removed.error().code == Code::not_found) {
      continue;  // it ended between the list and now
    } else {
      print_error("osb: " + clean(id), removed.error());
      status = 1;
      if (removed.error().code == Code::unavailable) break;
    }
  }
  co_return status;
}

}  // namespace osb::cli
