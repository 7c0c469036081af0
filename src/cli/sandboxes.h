#pragma once

// `osb rm`, and the table of `osb ls`.

#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/api.h"
#include "cli/arguments.h"
#include "io/task.h"
#include "json/decode.h"

namespace osb::cli {

io::Task<int> remove_sandboxes(RmOptions options);

// What a server says of its runtimes; nothing when it says nothing.
struct ServerRuntimes {
  std::string standard = {};  // of sandboxes that name none
  bool several = false;
};
io::Task<ServerRuntimes> runtimes_of(Api& api);
// "" when it is not known.
std::string runtime_of(const json::bj::value& sandbox, const ServerRuntimes& runtimes);

// One row per sandbox below a heading, columns aligned; times relative to `now`. The runtime where there is a
// choice, or all columns are wanted.
enum class Columns { needed, all };
std::string sandbox_table(const std::vector<json::bj::value>& sandboxes, WallTime now,
                          const ServerRuntimes& runtimes = {}, Columns columns = Columns::needed);

}  // namespace osb::cli
