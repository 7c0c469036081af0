#include "cli/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/table.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using What = SnapshotOptions::What;

constexpr auto kLookAgain = std::chrono::milliseconds(50);

// Names of others end up on a terminal: control characters do not.
std::string clean(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string member(const bj::value& value, std::string_view one, std::string_view below = "") {
  json::Issues ignored;
  auto field = json::Field::root(value, ignored, "answer")[std::string(one)];
  if (!below.empty()) field = field[std::string(below)];
  return clean(field.string().value_or(""));
}

std::vector<bj::value> items_of(const bj::value& answer) {
  const auto* object = answer.if_object();
  const auto* items = object ? object->if_contains("items") : nullptr;
  const auto* array = items ? items->if_array() : nullptr;
  return array ? std::vector<bj::value>(array->begin(), array->end()) : std::vector<bj::value>();
}

Task<Result<void>> create(Api& api, SnapshotOptions options) {
  bj::object body;
  if (!options.name.empty()) body["name"] = options.name;
  std::string target = "/v1/sandboxes/" + percent_encode(options.sandbox) + "/snapshots";
  auto answer = CO_TRY(co_await api.ask("POST", std::move(target), json::print(body)));
  std::string id = member(answer, "id");
  while (member(answer, "status", "state") == "Creating") {
    co_await io::sleep_for(kLookAgain);
    answer = CO_TRY(co_await api.ask("GET", "/v1/snapshots/" + percent_encode(id)));
  }
  if (member(answer, "status", "state") != "Ready")
    co_return fail(Code::internal, "snapshot " + id + ": " + member(answer, "status", "message"));
  fmt::print("{}\n", id);
  co_return Result<void>();
}

Task<Result<void>> list(Api& api, bool as_json) {
  std::vector<bj::value> all;
  for (int page = 1;; ++page) {
    auto answer = CO_TRY(co_await api.ask("GET", "/v1/snapshots?pageSize=200&page=" + std::to_string(page)));
    auto items = items_of(answer);
    all.insert(all.end(), items.begin(), items.end());
    if (items.size() < 200) break;
  }
  if (as_json)
    fmt::print("{}\n", json::print(bj::array(all.begin(), all.end())));
  else
    fmt::print("{}", snapshot_table(all, wall_now()));
  co_return Result<void>();
}

Task<Result<void>> fork(Api& api, SnapshotOptions options) {
  std::string target = "/v1/sandboxes/" + percent_encode(options.sandbox) + "/fork";
  auto answer =
      CO_TRY(co_await api.ask("POST", std::move(target), json::print(bj::object{{"count", options.count}})));
  for (const bj::value& one : items_of(answer)) fmt::print("{}\n", member(one, "id"));
  co_return Result<void>();
}

Task<Result<void>> roll_back(Api& api, SnapshotOptions options) {
  std::string target = "/v1/sandboxes/" + percent_encode(options.sandbox) + "/rollback";
  bj::object body{{"snapshotId", options.ids.front()}};
  auto answer = CO_TRY(co_await api.ask("POST", std::move(target), json::print(body)));
  fmt::print("{}\n", member(answer, "id"));
  co_return Result<void>();
}

Task<Result<void>> diff(Api& api, std::string sandbox) {
  auto answer = CO_TRY(co_await api.ask("GET", "/v1/sandboxes/" + percent_encode(sandbox) + "/diff"));
  const auto* object = answer.if_object();
  const auto* found = object ? object->if_contains("changes") : nullptr;
  const auto* changes = found ? found->if_array() : nullptr;
  if (!changes) co_return fail(Code::corrupt, "the answer has no \"changes\"");
  for (const bj::value& one : *changes)
    fmt::print("{} {}\n", member(one, "kind").substr(0, 1), member(one, "path"));
  co_return Result<void>();
}

// Each by itself: one that cannot be removed does not keep the others.
Task<int> remove(Api& api, std::vector<std::string> ids) {
  int status = 0;
  for (const std::string& id : ids) {
    auto removed = co_await api.ask("DELETE", "/v1/snapshots/" + percent_encode(id));
    if (removed) {
      fmt::print("{}\n", clean(id));
      continue;
    }
    print_error("osb: " + clean(id), removed.error());
    status = 1;
  }
  co_return status;
}

Task<Result<void>> carry_out(Api& api, SnapshotOptions options) {
  switch (options.what) {
    case What::create:
      return create(api, std::move(options));
    case What::fork:
      return fork(api, std::move(options));
    case What::rollback:
      return roll_back(api, std::move(options));
    case What::diff:
      return diff(api, std::move(options.sandbox));
    default:
      return list(api, options.json);
  }
}

}  // namespace

std::string snapshot_table(const std::vector<bj::value>& snapshots, WallTime now) {
  std::vector<std::vector<std::string>> rows{{"ID", "STATE", "NAME", "SANDBOX", "AGE"}};
  for (const bj::value& one : snapshots) {
    auto created = parse_time(member(one, "createdAt"));
    auto age =
        created ? std::chrono::duration_cast<std::chrono::seconds>(now - *created) : std::chrono::seconds(0);
    rows.push_back({member(one, "id"), member(one, "status", "state"), member(one, "name"),
                    member(one, "sandboxId"),
                    !created           ? "?"
                    : age.count() <= 0 ? "0s"
                                       : print_duration(age)});
  }
  return print_table(rows);
}

io::Task<int> run_snapshots(SnapshotOptions options) {
  Api api(options.connection);
  if (options.what == What::remove) co_return co_await remove(api, std::move(options.ids));
  if (!options.sandbox.empty()) {
    auto found = co_await api.find(options.sandbox);
    if (!found) {
      print_error("osb", found.error());
      co_return 1;
    }
    options.sandbox = *found;
  }
  auto done = co_await carry_out(api, std::move(options));
  if (done) co_return 0;
  print_error("osb", done.error());
  co_return 1;
}

}  // namespace osb::cli
