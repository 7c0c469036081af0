// Images that are made of containers, volumes, and networks.

#include <boost/json.hpp>

#include "base/strings.h"
#include "docker/engine.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr size_t kMostList = 64 << 20;
constexpr auto kQuestion = std::chrono::seconds(10);
// For as much as a disk holds: nobody waits for it but the snapshot itself.
constexpr auto kCommit = std::chrono::hours(1);
constexpr auto kChanges = std::chrono::minutes(1);

std::string filter(boost::json::object filters) { return percent_encode(json::print(filters)); }

}  // namespace

Task<Result<std::string>> Engine::commit(std::string container, std::string repository, std::string tag,
                                         std::string body, std::vector<std::string> changes) {
  std::string path = "/commit?container=" + percent_encode(container) +
                     "&repo=" + percent_encode(repository) + "&tag=" + percent_encode(tag) + "&pause=1";
  for (const std::string& change : changes) path += "&changes=" + percent_encode(change);
  auto text = CO_TRY(
      co_await ask_within(kCommit, {.method = "POST", .path = std::move(path), .body = std::move(body)}));
  co_return parse_created(text);
}

// Podman's force would end every container that has the image, so its name is taken first, and then what
// nothing uses.
Task<Result<std::string>> Engine::untag(std::string name) {
  auto found = CO_TRY(co_await image(name));
  size_t colon = name.rfind(':');
  CO_TRY(co_await ask_in_time({.method = "POST",
                               .path = "/libpod/images/" + reference_path(name) + "/untag?repo=" +
                                       percent_encode("docker.io/library/" + name.substr(0, colon)) +
                                       "&tag=" + percent_encode(name.substr(colon + 1))}));
  co_return found.id;
}

Task<Result<void>> Engine::remove_image(std::string reference, Used used) {
  if (used == Used::untagged && CO_TRY(co_await is_podman())) {
    reference = CO_TRY(co_await untag(std::move(reference)));
    used = Used::refused;
  }
  std::string path = "/images/" + reference_path(reference) + (used == Used::untagged ? "?force=1" : "");
  CO_TRY(co_await ask_in_time({.method = "DELETE", .path = std::move(path)}));
  co_return Result<void>();
}

Task<Result<std::vector<Image>>> Engine::images_with(std::string label) {
  std::string path = "/images/json?filters=" + filter({{"label", boost::json::array{label}}});
  auto text = CO_TRY(co_await ask_in_time({.method = "GET", .path = std::move(path), .most = kMostList}));
  auto found = CO_TRY(parse_image_list(text));
  std::erase_if(found, [&](const Image& one) { return !has_label(one.labels, label); });
  co_return found;
}

Task<Result<std::vector<sandbox::FileChange>>> Engine::changes(std::string container) {
  auto text = CO_TRY(co_await ask_within(
      kChanges,
      {.method = "GET", .path = "/containers/" + percent_encode(container) + "/changes", .most = kMostList}));
  co_return parse_changes(text);
}

Task<Result<Volume>> Engine::volume(std::string name) {
  auto text =
      CO_TRY(co_await ask_within(kQuestion, {.method = "GET", .path = "/volumes/" + percent_encode(name)}));
  co_return parse_volume(text);
}

Task<Result<void>> Engine::create_volume(std::string name, std::map<std::string, std::string> labels) {
  boost::json::object with;
  for (const auto& [label, value] : labels) with[label] = value;
  boost::json::object body{{"Name", name}, {"Labels", std::move(with)}};
  CO_TRY(co_await ask_in_time({.method = "POST", .path = "/volumes/create", .body = json::print(body)}));
  co_return Result<void>();
}

Task<Result<std::vector<Volume>>> Engine::volumes_with(std::string label, Which which) {
  boost::json::object filters{{"label", boost::json::array{label}}};
  if (which == Which::unused) filters["dangling"] = boost::json::array{"true"};
  auto text = CO_TRY(co_await ask_in_time(
      {.method = "GET", .path = "/volumes?filters=" + filter(std::move(filters)), .most = kMostList}));
  auto found = CO_TRY(parse_volume_list(text));
  std::erase_if(found, [&](const Volume& one) { return !has_label(one.labels, label); });
  co_return found;
}

Task<Result<void>> Engine::remove_volume(std::string name) {
  CO_TRY(co_await ask_in_time({.method = "DELETE", .path = "/volumes/" + percent_encode(name)}));
  co_return Result<void>();
}

Task<Result<void>> Engine::network(std::string name) {
  CO_TRY(co_await ask_in_time({.method = "GET", .path = "/networks/" + percent_encode(name)}));
  co_return Result<void>();
}

}  // namespace osb::docker
