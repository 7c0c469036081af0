// Images of the server, for people who look after them.

#include <boost/json/object.hpp>

#include "base/strings.h"
#include "cli/api.h"

namespace osb::cli {
namespace {

namespace bj = json::bj;
using namespace std::chrono_literals;

constexpr auto kCallTime = 30s;
constexpr auto kRemoveTime = 300s;  // many files may have to go
constexpr auto kPullLook = 500ms;

}  // namespace

Task<Result<bj::object>> Api::pull(std::string image, std::string username, std::string password) {
  bj::object body{{"image", std::move(image)}};
  if (!username.empty()) body["auth"] = bj::object{{"username", username}, {"password", password}};
  co_return object_in(co_await call("POST", "/v1/images/pull", json::print(body), kCallTime));
}

Task<Result<bj::object>> Api::push(std::string image, std::string target, std::string username,
                                   std::string password) {
  bj::object body{{"image", std::move(image)}};
  if (!target.empty()) body["as"] = target;
  if (!username.empty()) body["auth"] = bj::object{{"username", username}, {"password", password}};
  co_return object_in(co_await call("POST", "/v1/images/push", json::print(body), kCallTime));
}

Task<Result<Api::ImageList>> Api::images() {
  auto answer = CO_TRY(co_await call("GET", "/v1/images", "", kCallTime));
  json::Issues issues;
  auto root = json::Field::root(answer, issues, "answer");
  auto items = root["items"].array();
  if (!items || !issues.empty()) co_return std::unexpected(foreign("the list has no items"));
  ImageList out;
  for (const auto& item : *items) {
    if (item.raw()) out.stored.push_back(*item.raw());
  }
  out.directories = root["directories"].string_list().value_or(std::vector<std::string>());
  co_return out;
}

Task<Result<bj::object>> Api::image(std::string name) {
  std::string target = "/v1/images/inspect?name=" + percent_encode(name);
  co_return object_in(co_await call("GET", std::move(target), "", kCallTime));
}

Task<Result<void>> Api::remove_image(std::string name, bool force) {
  std::string target = "/v1/images?name=" + percent_encode(name) + (force ? "&force=true" : "");
  CO_TRY(co_await call("DELETE", std::move(target), "", kRemoveTime));
  co_return Result<void>();
}

Task<Result<bj::object>> Api::prune_images() {
  co_return object_in(co_await call("POST", "/v1/images/prune", "", kRemoveTime));
}

// By a connection of its own, to the server that is asked: one for the occasion is started by whoever asks.
Task<Result<bj::value>> Api::pull_state(std::string image) {
  Connection same = to_;
  same.occasion = Occasion::none;
  Api api(std::move(same));
  co_return co_await api.call("GET", "/v1/images/pull?name=" + percent_encode(image), "", kCallTime);
}

Task<> Api::watch_pull(std::string image, PullWatch watch) {
  while (true) {
    co_await io::sleep_for(kPullLook);
    auto state = co_await pull_state(image);
    watch(state ? *state : bj::value());
  }
}

}  // namespace osb::cli
