#include "docker/engine.h"

#include <boost/json.hpp>

#include "base/shown.h"
#include "base/strings.h"
#include "docker/base64url.h"
#include "docker/pulled_layers.h"
#include "json/decode.h"

namespace osb::docker {
namespace {

constexpr ApiVersion kOldest{1, 41}, kNewest{1, 47};
constexpr size_t kMostIdle = 8;
constexpr size_t kMostList = 64 << 20;  // 10000 containers with 64 labels each
constexpr size_t kMostLine = 1 << 20;
constexpr auto kQuestion = std::chrono::seconds(10);  // of calls that change nothing
constexpr auto kPull = std::chrono::hours(1);
constexpr auto kPullSilence = std::chrono::minutes(5);

std::string container_path(const std::string& container, std::string_view action) {
  return "/containers/" + percent_encode(container) + std::string(action);
}

Code code_of(int status) {
  switch (status) {
    case 304:
    case 409:
      return Code::wrong_state;
    case 400:
      return Code::invalid_argument;
    case 404:
      return Code::not_found;
    case 503:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

}  // namespace

Error Engine::refusal(int status, std::string_view body) {
  return {code_of(status), 0, parse_error(body, status)};
}

// Whatever went wrong on the way: the engine is away, or does not speak as it should, which comes to the
// same.
Error Engine::away(Error error) const {
  if (error.code == Code::timeout || error.code == Code::cancelled || error.code == Code::too_large)
    return std::move(error).in("the Docker engine");
  std::string remedy = remedy_for(error, address_);
  return {Code::unavailable, error.sys_errno, "the Docker engine does not answer: " + error.message + remedy};
}

std::string reference_path(std::string_view reference) {
  std::string out;
  for (std::string_view part : split(reference, '/'))
    out.append(out.empty() ? "" : "/").append(percent_encode(part));
  return out;
}

Result<ApiVersion> choose_version(const EngineVersion& engine) {
  ApiVersion chosen = std::min(kNewest, engine.newest);
  if (chosen < kOldest) {
    return fail(Code::unsupported, "the Docker engine is too old: it speaks version " +
                                       to_string(engine.newest) + " of its API; use Docker 20.10 or later");
  }
  if (chosen < engine.oldest) {
    return fail(Code::unsupported, "the Docker engine is too new: it speaks version " +
                                       to_string(engine.oldest) +
                                       " of its API and later, this server up to " + to_string(kNewest));
  }
  return chosen;
}

Task<> Engine::close() {
  idle_.clear();
  if (pumps_) co_await pumps_->close();
}

Task<Result<Link>> Engine::connect() {
  while (!idle_.empty()) {
    Link link = std::move(idle_.back());
    idle_.pop_back();
    if (link.connection.alive()) co_return link;
  }
  if (!pumps_) pumps_.emplace(co_await io::asio::this_coro::executor);
  co_return co_await open_link(address_, *pumps_);
}

Task<Result<http::Response>> Engine::exchange(Call call) {
  http::RequestHead head{call.method, call.path, true, std::move(call.headers)};
  head.headers.set("Host", "docker");
  if (!call.body.empty() && head.headers.get("Content-Type").empty())
    head.headers.set("Content-Type", "application/json");
  auto link = CO_TRY(co_await connect());
  auto response = co_await http::fetch(link.connection, std::move(head), std::move(call.body), call.most);
  if (!response) co_return std::unexpected(link.cause(std::move(response.error())));
  if (link.connection.reusable() && idle_.size() < kMostIdle) idle_.push_back(std::move(link));
  co_return response;
}

Task<Result<std::string>> Engine::ask(Call call) {
  auto response = co_await exchange(std::move(call));
  if (!response) co_return std::unexpected(away(std::move(response.error())));
  if (response->head.status == 400 && response->body.find("HTTPS server") != std::string::npos) {
    co_return fail(Code::unavailable,
                   "the Docker engine does not answer: it speaks TLS at this address; name docker.tls_ca, "
                   "docker.tls_cert and docker.tls_key, and start the service again");
  }
  if (response->head.status >= 300) co_return std::unexpected(refusal(response->head.status, response->body));
  co_return std::move(response->body);
}

Task<Result<ApiVersion>> Engine::spoken() {
  if (!version_) CO_TRY(co_await version());
  co_return choose_version(*version_);
}

Task<Result<bool>> Engine::is_podman() {
  if (!version_) CO_TRY(co_await version());
  co_return version_->podman;
}

Task<Result<std::string>> Engine::machine() {
  if (!version_) CO_TRY(co_await version());
  co_return version_->machine;
}

// Without a version in the path the newest one of the engine would answer.
Task<Result<std::string>> Engine::prefix() { co_return "/v" + to_string(CO_TRY(co_await spoken())); }

Task<Result<std::string>> Engine::ask_in_time(Call call) {
  bool question = call.method == "GET";
  auto limit = question ? std::min<io::Duration>(kQuestion, settings_.timeout) : settings_.timeout;
  return ask_within(limit, std::move(call));
}

Task<Result<std::string>> Engine::ask_within(io::Duration limit, Call call) {
  call.path = CO_TRY(co_await prefix()) + call.path;
  auto answer = co_await io::with_deadline(limit, "the Docker engine", ask(std::move(call)));
  if (!answer && answer.error().code == Code::unavailable) forget();
  // What another one does not have may well be there.
  if (!answer && answer.error().code == Code::not_found) CO_TRY(co_await recognise_again());
  co_return answer;
}

void Engine::forget() {
  version_.reset();
  processors_.reset();
}

Task<Result<EngineVersion>> Engine::version() {
  auto text = CO_TRY(
      co_await io::with_deadline(kQuestion, "the Docker engine", ask({.method = "GET", .path = "/version"})));
  auto found = CO_TRY(parse_version(text));
  CO_TRY(co_await recognise(found));
  version_ = std::move(found);
  CO_TRY(choose_version(*version_));
  co_return *version_;
}

Task<Result<void>> Engine::ping() {
  CO_TRY(co_await ask_in_time({.method = "GET", .path = "/_ping"}));
  co_return Result<void>();
}

Task<Result<std::vector<std::string>>> Engine::runtimes() {
  co_return parse_runtimes(CO_TRY(co_await ask_in_time({.method = "GET", .path = "/info"})));
}

Task<int64_t> Engine::processors() {
  if (processors_) co_return *processors_;
  auto text = co_await ask_in_time({.method = "GET", .path = "/info"});
  if (!text) co_return 0;
  processors_ = parse_processors(*text).value_or(0);
  co_return *processors_;
}

Task<Result<Image>> Engine::image(std::string reference) {
  auto text = CO_TRY(co_await ask_in_time(
      {.method = "GET", .path = "/images/" + reference_path(reference) + "/json", .most = 8 << 20}));
  co_return parse_image(text);
}

Task<Result<void>> Engine::follow_pull(Call call, std::function<void(std::string)> progress) {
  http::RequestHead head{call.method, call.path, true, std::move(call.headers)};
  head.headers.set("Host", "docker");
  Link link = CO_TRY(co_await connect());
  http::ClientConnection& connection = link.connection;
  CO_TRY(co_await connection.send_head(std::move(head), 0));
  auto answer = CO_TRY(co_await connection.read_head());
  if (answer.status >= 300) {
    auto body = CO_TRY(co_await http::read_all(connection.body(), kMostLine));
    co_return std::unexpected(refusal(answer.status, body));
  }
  std::string line, error;
  PulledLayers layers;
  char piece[16384];
  while (true) {
    size_t got =
        CO_TRY(co_await io::with_deadline(kPullSilence, "the pull", connection.body().read_some(piece)));
    line.append(piece, got);
    if (got == 0) line.push_back('\n');
    size_t end = 0;
    while ((end = line.find('\n')) != line.npos) {
      std::string_view one = trim(std::string_view(line).substr(0, end));
      if (!one.empty()) {
        auto said = CO_TRY(parse_pull_line(one));
        if (!said.error.empty()) error = said.error;
        if (!said.text.empty()) progress(layers.hear(said));
      }
      line.erase(0, end + 1);
    }
    if (line.size() > kMostLine) co_return fail(Code::corrupt, "the engine's progress has no lines");
    if (got == 0) break;
  }
  // The status is 200 also for a pull that has failed.
  if (!error.empty()) co_return fail(Code::internal, error);
  co_return Result<void>();
}

Task<Result<void>> Engine::pull(std::string name, std::string tag, std::string platform,
                                std::optional<RegistryLogin> login,
                                std::function<void(std::string)> progress) {
  std::string path = CO_TRY(co_await prefix()) + "/images/create?fromImage=" + percent_encode(name) +
                     "&tag=" + percent_encode(tag);
  if (!platform.empty()) path += "&platform=" + percent_encode(platform);
  Call call{.method = "POST", .path = std::move(path)};
  if (login) {
    boost::json::object auth{
        {"username", login->username}, {"password", login->password}, {"serveraddress", login->server}};
    call.headers.set("X-Registry-Auth", to_base64url(json::print(auth)));
  }
  auto pulled =
      co_await io::with_deadline(kPull, "the pull", follow_pull(std::move(call), std::move(progress)));
  if (!pulled && (pulled.error().code == Code::unavailable || pulled.error().code == Code::corrupt))
    co_return std::unexpected(away(std::move(pulled.error())));
  co_return pulled;
}

Task<Result<std::string>> Engine::create(std::string name, std::string platform, std::string body) {
  std::string path = "/containers/create?name=" + percent_encode(name);
  if (!platform.empty()) path += "&platform=" + percent_encode(platform);
  auto text =
      CO_TRY(co_await ask_in_time({.method = "POST", .path = std::move(path), .body = std::move(body)}));
  co_return parse_created(text);
}

Task<Result<void>> Engine::start(std::string container) {
  auto done = co_await ask_in_time({.method = "POST", .path = container_path(container, "/start")});
  if (!done) co_return std::unexpected(std::move(done.error()));
  co_return Result<void>();
}

Task<Result<Container>> Engine::inspect(std::string container) {
  auto text = CO_TRY(
      co_await ask_in_time({.method = "GET", .path = container_path(container, "/json"), .most = 8 << 20}));
  co_return parse_container(text);
}

Task<Result<int>> Engine::wait(std::string container) {
  std::string path = CO_TRY(co_await prefix()) + container_path(container, "/wait?condition=not-running");
  auto text = co_await ask({.method = "POST", .path = std::move(path)});
  if (text) co_return parse_wait(*text);
  if (text.error().code == Code::unavailable) forget();
  if (text.error().code == Code::not_found) CO_TRY(co_await recognise_again());
  co_return std::unexpected(std::move(text.error()));
}

Task<Result<std::string>> Engine::logs(std::string container) {
  auto bytes =
      CO_TRY(co_await ask_in_time({.method = "GET",
                                   .path = container_path(container, "/logs?stdout=1&stderr=1&tail=1000"),
                                   .most = kMostList}));
  co_return parse_logs(bytes);
}

Task<Result<void>> Engine::pause(std::string container) {
  CO_TRY(co_await ask_in_time({.method = "POST", .path = container_path(container, "/pause")}));
  co_return Result<void>();
}

Task<Result<void>> Engine::unpause(std::string container) {
  CO_TRY(co_await ask_in_time({.method = "POST", .path = container_path(container, "/unpause")}));
  co_return Result<void>();
}

Task<Result<void>> Engine::kill(std::string container) {
  CO_TRY(co_await ask_in_time({.method = "POST", .path = container_path(container, "/kill")}));
  co_return Result<void>();
}

Task<Result<void>> Engine::remove(std::string container) {
  auto removed =
      co_await ask_in_time({.method = "DELETE", .path = container_path(container, "?force=1&v=1")});
  if (!removed && removed.error().code == Code::wrong_state) {
    // Somebody removes it already.
    removed = co_await ask_in_time(
        {.method = "POST", .path = container_path(container, "/wait?condition=removed")});
  }
  if (!removed && removed.error().code != Code::not_found)
    co_return std::unexpected(std::move(removed.error()));
  co_return Result<void>();
}

Task<Result<void>> Engine::rename(std::string container, std::string name) {
  CO_TRY(co_await ask_in_time(
      {.method = "POST", .path = container_path(container, "/rename?name=" + percent_encode(name))}));
  co_return Result<void>();
}

Engine::Call Engine::list_call(const std::string& prefix, std::vector<std::string> labels) {
  boost::json::object filters{{"label", boost::json::array(labels.begin(), labels.end())}};
  return {.method = "GET",
          .path = prefix + "/containers/json?all=1&filters=" + percent_encode(json::print(filters)),
          .most = kMostList};
}

Task<Result<std::string>> Engine::list_with(std::vector<std::string> labels) {
  co_return co_await ask_in_time(list_call("", std::move(labels)));
}

Task<Result<std::vector<Listed>>> Engine::containers_with(std::vector<std::string> labels) {
  auto found = CO_TRY(parse_container_list(CO_TRY(co_await list_with(labels))));
  std::erase_if(found, [&](const Listed& one) {
    return !std::ranges::all_of(labels, [&](const auto& label) { return has_label(one.labels, label); });
  });
  co_return found;
}

Task<Result<std::vector<std::map<std::string, std::string>>>> Engine::labels_of_all(std::string label) {
  auto found = CO_TRY(parse_labels_of_list(CO_TRY(co_await list_with({label}))));
  std::erase_if(found, [&](const auto& labels) { return !has_label(labels, label); });
  co_return found;
}

}  // namespace osb::docker
