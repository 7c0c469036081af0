#include "cli/named_things.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/shown.h"
#include "base/strings.h"
#include "cli/api_error.h"

namespace osb::cli {

namespace bj = json::bj;

Task<Result<void>> list_named(Api& api, std::string target, bool as_json, TableOf table) {
  auto answer = CO_TRY(co_await api.ask("GET", std::move(target)));
  const auto* object = answer.if_object();
  const auto* found = object ? object->if_contains("items") : nullptr;
  const auto* items = found ? found->if_array() : nullptr;
  if (!items) co_return fail(Code::corrupt, "the answer has no \"items\"");
  if (as_json)
    fmt::print("{}\n", json::print(*items));
  else
    fmt::print("{}", table(std::vector<bj::value>(items->begin(), items->end()), wall_now()));
  co_return Result<void>();
}

Task<int> remove_named(Api& api, std::string below, std::vector<std::string> names) {
  int status = 0;
  for (const std::string& name : names) {
    auto removed = co_await api.ask("DELETE", below + percent_encode(name));
    if (removed) {
      fmt::print("{}\n", shown(name));
      continue;
    }
    print_error("osb: " + std::string(shown(name)), removed.error());
    status = 1;
  }
  co_return status;
}

}  // namespace osb::cli
