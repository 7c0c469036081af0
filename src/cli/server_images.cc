#include "cli/server_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iostream>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/api.h"
#include "cli/api_error.h"
#include "cli/build.h"
#include "cli/pull_line.h"
#include "cli/table.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;

uint64_t number(const json::Field& field) {
  return static_cast<uint64_t>(std::max<int64_t>(0, field.integer().value_or(0)));
}

int failed(const Error& error) {
  print_error("osb", error);
  return 1;
}

// Nobody named a server and none answers: what was imported on this host can be seen without one.
int failed_without_server(Error error, const Connection& asked) {
  if (error.code == Code::unavailable && asked.occasion != Occasion::none)
    error.message += "; without a server: --config FILE or --state-dir DIR, on the service's host";
  return failed(error);
}

// What `osb images build` has kept. One that a sandbox uses stays.
io::Task<Result<uint64_t>> prune_steps(Api& api) {
  std::vector<std::string> ids;
  for (int page = 1;; ++page) {
    auto answer = CO_TRY(co_await api.ask("GET", "/v1/snapshots?pageSize=200&page=" + std::to_string(page)));
    json::Issues ignored;
    auto items = json::Field::root(answer, ignored, "answer")["items"].array();
    if (!items || items->empty()) break;
    for (const json::Field& item : *items) {
      if (item["name"].string().value_or("").starts_with(kBuildCache))
        ids.push_back(item["id"].string().value_or(""));
    }
    if (items->size() < 200) break;
  }
  uint64_t removed = 0;
  for (const std::string& id : ids)
    removed += co_await api.ask("DELETE", "/v1/snapshots/" + percent_encode(id)) ? 1 : 0;
  co_return removed;
}

}  // namespace

io::Task<int> pull_image(PullImageOptions options) {
  if (!options.username.empty() && !std::getline(std::cin, options.password)) {
    print_error("osb", Error{Code::invalid_argument, 0, "no password on standard input"});
    co_return 2;
  }
  Api api(options.connection);
  PullLine line(options.quiet ? PullLine::Wanted::no : PullLine::Wanted::yes);
  while (true) {
    auto answer = co_await api.pull(options.name, options.username, options.password);
    if (!answer) {
      line.clear();
      co_return failed(answer.error());
    }
    bj::value value = std::move(*answer);
    json::Issues ignored;
    auto state = json::Field::root(value, ignored, "pull");
    if (!state["done"].boolean().value_or(false)) {
      line.show(value);
      continue;
    }
    line.clear();
    std::string id = state["id"].string().value_or("");
    fmt::print("{}\n",
               options.quiet ? id : "pulled " + state["name"].string().value_or("") + " " + id.substr(0, 12));
    co_return 0;
  }
}

io::Task<int> push_image(PushImageOptions options) {
  if (!options.username.empty() && !std::getline(std::cin, options.password)) {
    print_error("osb", Error{Code::invalid_argument, 0, "no password on standard input"});
    co_return 2;
  }
  Api api(options.connection);
  PullLine line(options.quiet ? PullLine::Wanted::no : PullLine::Wanted::yes);
  while (true) {
    auto answer = co_await api.push(options.name, options.target, options.username, options.password);
    if (!answer) {
      line.clear();
      co_return failed(answer.error());
    }
    bj::value value = std::move(*answer);
    json::Issues ignored;
    auto state = json::Field::root(value, ignored, "push");
    if (!state["done"].boolean().value_or(false)) {
      line.show(value, "uploaded");
      continue;
    }
    line.clear();
    std::string digest = state["digest"].string().value_or("");
    fmt::print("{}\n",
               options.quiet ? digest : "pushed " + state["name"].string().value_or("") + " " + digest);
    co_return 0;
  }
}

io::Task<int> list_server_images(LsImagesOptions options) {
  Api api(*options.connection);
  auto images = co_await api.images();
  if (!images) co_return failed_without_server(std::move(images.error()), *options.connection);
  if (options.json) {
    fmt::print("{}\n", json::print(bj::array(images->stored.begin(), images->stored.end())));
    co_return 0;
  }
  std::vector<std::vector<std::string>> rows{{"NAME", "ID", "LAYERS", "SIZE", "AGE"}};
  for (const std::string& name : images->directories) {
    const char* what = name == "host" ? "(the server's own /usr)" : "(a directory of the server)";
    rows.push_back({name, what, "-", "-", "-"});
  }
  for (const bj::value& image : images->stored) {
    json::Issues ignored;
    auto field = json::Field::root(image, ignored, "image");
    auto since = parse_time(field["createdAt"].string().value_or(""));
    auto age = since ? std::chrono::duration_cast<std::chrono::seconds>(wall_now() - *since)
                     : std::chrono::seconds(0);
    auto names = field["names"].string_list().value_or(std::vector<std::string>());
    if (names.empty()) names.emplace_back("(none, in use)");
    for (const std::string& name : names) {
      rows.push_back({name, field["id"].string().value_or("").substr(0, 12),
                      std::to_string(number(field["layers"])), print_bytes(number(field["bytes"])),
                      age.count() <= 0 ? "0s" : print_duration(age)});
    }
  }
  fmt::print("{}", print_table(rows));
  co_return 0;
}

io::Task<int> remove_server_images(RmImagesOptions options) {
  Api api(*options.connection);
  int status = 0;
  for (const std::string& name : options.names) {
    auto removed = co_await api.remove_image(name, options.force);
    if (removed) fmt::print("{}\n", name);
    if (!removed) status = failed_without_server(std::move(removed.error()), *options.connection);
  }
  co_return status;
}

io::Task<int> inspect_image(InspectImageOptions options) {
  Api api(options.connection);
  auto image = co_await api.image(options.name);
  if (image) {
    fmt::print("{}\n", json::print(*image));
    co_return 0;
  }
  if (image.error().code != Code::not_found) co_return failed(image.error());
  co_return failed(
      {Code::not_found, 0,
       "the server has no image named " + options.name + "\n  remedy: osb images pull " + options.name});
}

io::Task<int> prune_images(PruneImagesOptions options) {
  Api api(options.connection);
  // First: an image that a kept step lies over is in use.
  auto steps = co_await prune_steps(api);
  if (!steps) co_return failed(steps.error());
  if (*steps > 0) fmt::print("{} kept steps of builds\n", *steps);
  auto answer = co_await api.prune_images();
  if (!answer) co_return failed(answer.error());
  bj::value value = std::move(*answer);
  json::Issues ignored;
  auto field = json::Field::root(value, ignored, "pruned");
  for (const std::string& name : field["removed"].string_list().value_or(std::vector<std::string>()))
    fmt::print("{}\n", name);
  fmt::print("freed {}\n", print_bytes(number(field["freed"])));
  co_return 0;
}

}  // namespace osb::cli
