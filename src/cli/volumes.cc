#include "cli/volumes.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/shown.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/named_things.h"
#include "cli/table.h"

namespace osb::cli {

namespace bj = json::bj;

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
  if (!options.names.empty()) co_return co_await remove_named(api, "/v1/volumes/", std::move(options.names));
  auto done = co_await list_named(api, "/v1/volumes", options.json, volume_table);
  if (done) co_return 0;
  print_error("osb", done.error());
  co_return 1;
}

}  // namespace osb::cli
