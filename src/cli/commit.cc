#include "cli/commit.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/api.h"
#include "cli/api_error.h"

namespace osb::cli {

namespace bj = json::bj;

Task<int> commit_image(CommitImageOptions options) {
  Api api(options.connection);
  if (!options.is_snapshot) {
    auto found = co_await api.find(options.id);
    if (!found) {
      print_error("osb", found.error());
      co_return 1;
    }
    options.id = std::move(*found);
  }
  bj::object config, env, labels;
  for (const auto& [name, value] : options.env) env[name] = value;
  for (const auto& [name, value] : options.labels) labels[name] = value;
  config["env"] = std::move(env);
  config["labels"] = std::move(labels);
  if (options.user) config["user"] = *options.user;
  if (options.workdir) config["workingDir"] = *options.workdir;
  if (!options.entrypoint.empty())
    config["entrypoint"] = bj::array(options.entrypoint.begin(), options.entrypoint.end());
  if (!options.ports.empty()) config["exposedPorts"] = bj::array(options.ports.begin(), options.ports.end());
  bj::object body{{options.is_snapshot ? "snapshotId" : "sandboxId", options.id},
                  {"name", options.name},
                  {"config", std::move(config)}};
  auto answer = co_await api.ask("POST", "/v1/images/commit", json::print(body));
  if (!answer) {
    print_error("osb", answer.error());
    co_return 1;
  }
  json::Issues ignored;
  fmt::print("{}\n", json::Field::root(*answer, ignored, "answer")["id"].string().value_or(""));
  co_return 0;
}

}  // namespace osb::cli
