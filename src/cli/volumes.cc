#include "cli/volumes.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/shown.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/table.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

Task<Result<void>> list(Api& api, bool as_json) {
  auto answer = CO_TRY(co_await api.ask("GET", "/v1/volumes"));
  const auto* object = answer.if_object();
  const auto* found = object ? object->if_contains("items") : nullptr;
  const auto* items = found ? found->if_array() : nullptr;
  if (!items) co_return fail(Code::corrupt, "the answer has no \"items\"");
  if (as_json)
    fmt::print("{}\n", json::print(*items));
  else
    fmt::print("{}", volume_table(std::vector<bj::value>(items->begin(), items->end()), wall_now()));
  co_return Result<void>();
}

// Each by itself: one that cannot be removed does not keep the others.
Task<int> remove(Api& api, std::vector<std::string> names) {
  int status = 0;
  for (const std::string& name : names) {
    auto removed = co_await api.ask("DELETE", "/v1/volumes/" + percent_encode(name));
    if (removed) {
      fmt::print("{}\n", shown(name));
      continue;
    }
    print_error("osb: " + std::string(shown(name)), removed.error());
    status = 1;
  }
  co_return status;
}

}  // namespace

std::string volume_table(const std::vector<bj::value>& volumes, WallTime now) {
  std::vector<std::vector<std::string>> rows{{"NAME", "SIZE", "SANDBOXES", "GOES WITH THE LAST", "AGE"}};
  for (const bj::value& one : volumes) {
    json::Issues ignored;
    auto field = json::Field::root(one, ignored, "volume");
    auto size = field["sizeBytes"].integer();
    auto created = parse_time(field["createdAt"].string().value_or(""));
    auto age =
        created ? std::chrono::duration_cast<std::chrono::seconds>(now - *created) : std::chrono::seconds(0);
    rows.push_back({std::string(shown(field["name"].string().value_or("?"))),
                    size ? print_bytes(static_cast<uint64_t>(*size)) : "-",
                    std::to_string(field["sandboxes"].integer().value_or(0)),
                    field["deleteOnSandboxTermination"].boolean().value_or(false) ? "yes" : "no",
                    !created           ? "?"
                    : age.count() <= 0 ? "0s"
                                       : print_duration(age)});
  }
  return print_table(rows);
}

io::Task<int> run_volumes(VolumeOptions options) {
  Api api(options.connection);
  if (!options.names.empty()) co_return co_await remove(api, std::move(options.names));
  auto done = co_await list(api, options.json);
  if (done) co_return 0;
  print_error("osb", done.error());
  co_return 1;
}

}  // namespace osb::cli
