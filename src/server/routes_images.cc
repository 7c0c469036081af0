// The images of the server: what there is, what is on its way, what may go. Clients of the contract never
// need them: a create brings its image by itself.

#include <boost/json.hpp>

#include "api/error_catalogue.h"
#include "api/failure_status.h"
#include "api/image_requests.h"
#include "api/list_query.h"
#include "json/decode.h"
#include "sandbox/failures.h"
#include "server/caller.h"
#include "server/image_keeper.h"
#include "server/routes.h"
#include "server/runtime_calls.h"

namespace osb::server {
namespace {

namespace bj = json::bj;
using api::ApiResult;

// How long a request waits for the end of a pull before it says how far that is.
constexpr io::Duration kPullHeld = std::chrono::milliseconds(500);

bj::array strings(const std::vector<std::string>& list) {
  bj::array out;
  for (const std::string& text : list) out.emplace_back(text);
  return out;
}

bj::object image_json(const runtime::StoredImage& image) {
  bj::array env;
  for (const auto& [name, value] : image.env) env.emplace_back(name + "=" + value);
  bj::object out{{"id", image.id},           {"names", strings(image.names)},
                 {"bytes", image.bytes},     {"entries", image.entries},
                 {"layers", image.layers},   {"createdAt", format_api_time(image.since)},
                 {"env", std::move(env)},    {"user", image.user},
                 {"workdir", image.workdir}, {"entrypoint", strings(image.entrypoint)},
                 {"cmd", strings(image.cmd)}};
  if (!image.manifest.empty()) out["manifest"] = "sha256:" + image.manifest;
  if (!image.labels.empty()) {
    bj::object labels;
    for (const auto& [name, value] : image.labels) labels[name] = value;
    out["labels"] = std::move(labels);
  }
  if (!image.ports.empty()) out["exposedPorts"] = strings(image.ports);
  return out;
}

// Of the store, not of a sandbox. Its messages are for a terminal: the remedy has a line of its own.
api::ApiError store_error(const Error& error) {
  constexpr std::string_view kRemedy = "\n  remedy: ";
  size_t at = error.message.find(kRemedy);
  std::string message = error.message.substr(0, at);
  std::string remedy = at == error.message.npos ? "" : error.message.substr(at + kRemedy.size());
  auto refused = [&](int status, const char* code) {
    return api::ApiError{.status = status, .code = code, .message = message, .cause = "", .remedy = remedy};
  };
  switch (error.code) {
    case Code::not_found:
      return refused(404, "IMAGE::NOT_FOUND");
    case Code::wrong_state:
      return refused(409, "IMAGE::IN_USE");
    case Code::unsupported:
      return refused(400, "SANDBOX::UNSUPPORTED");
    case Code::invalid_argument:
      return refused(400, "IMAGE::NOT_FOUND");
    default:
      return api::to_api_error(sandbox::internal_error(error));
  }
}

api::ApiError pull_error(const Error& error) {
  return api::to_api_error(to_failure(runtime::pull_failure(error)));
}

Task<ApiResult<Answer>> list_images(Service& service, Request& request) {
  runtime::ImageLibrary* library = CO_TRY(library_of(service.runtimes.standard()));
  auto images = library->list();
  if (!images) co_return api::refuse(store_error(images.error()));
  bj::array items;
  const std::string owner = caller_of(request).owner;
  for (const runtime::StoredImage& image : *images) {
    if (image.owner.empty() || image.owner == owner) items.push_back(image_json(image));
  }
  co_return Answer{.body = json::print(bj::object{{"items", std::move(items)},
                                                  {"directories", strings(library->directories())}})};
}

// By the rules of a create, which clients need not know.
Task<ApiResult<Answer>> inspect_image(Service& service, Request& request) {
  runtime::Runtime& runtime = service.runtimes.standard();
  runtime::ImageLibrary* library = CO_TRY(library_of(runtime));
  auto name = http::Query(request.head.query()).get("name");
  if (!name || name->empty()) co_return api::refuse(api::invalid_parameter("name", "is required"));
  auto found = library->find(caller_of(request).owner, *name);
  if (!found) co_return api::refuse(store_error(found.error()));
  bj::object out = image_json(*found);
  if (found->id.empty()) out = {{"id", ""}, {"names", strings(found->names)}, {"directory", true}};
  const auto& platforms = runtime.capabilities().platforms;
  if (!platforms.empty()) out["platform"] = platforms.front();
  co_return Answer{.body = json::print(out)};
}

bj::object pull_json(const runtime::PullState& state, bool done) {
  return {{"name", state.name},
          {"done", done},
          {"downloaded", state.progress.downloaded},
          {"total", state.progress.total},
          {"unpacked", state.progress.unpacked},
          {"layers", state.progress.layers},
          {"message", done ? "here" : to_text(state.progress)}};
}

// For whoever waits for a create: how far its image is, without a pull that nobody wanted.
Task<ApiResult<Answer>> look_at_pull(Service& service, Request& request) {
  runtime::ImageLibrary* library = CO_TRY(library_of(service.runtimes.standard()));
  auto name = http::Query(request.head.query()).get("name");
  if (!name || name->empty()) co_return api::refuse(api::invalid_parameter("name", "is required"));
  if (auto state = library->pulling(*name)) co_return Answer{.body = json::print(pull_json(*state, false))};
  co_return api::refuse(store_error({Code::not_found, 0, "no pull of this image is under way"}));
}

Task<ApiResult<Answer>> pull_image(Service& service, Request& request) {
  std::string body = CO_TRY(co_await read_body(request));
  auto wanted = CO_TRY(api::decode_pull(request.head.headers.get("Content-Type"), body));
  runtime::ImageLibrary* library = CO_TRY(library_of(service.runtimes.standard()));
  runtime::ImageRequest image{.reference = std::move(wanted.image)};
  if (wanted.auth) image.auth = runtime::Credentials{wanted.auth->username, wanted.auth->password};
  auto pull = library->pull(image);
  if (!pull) co_return api::refuse(store_error(pull.error()));
  runtime::PullPtr state = *pull;
  if (!state->done.is_set()) co_await io::race(state->done.wait(), io::sleep_for(kPullHeld));
  bool done = state->done.is_set();
  if (done && !state->outcome) co_return api::refuse(pull_error(state->outcome.error()));
  bj::object out = pull_json(*state, done);
  if (done) out["id"] = *state->outcome;
  co_return Answer{.status = done ? 200 : 202, .body = json::print(out)};
}

Task<ApiResult<Answer>> remove_image(Service& service, Request& request) {
  runtime::ImageLibrary* library = CO_TRY(library_of(service.runtimes.standard()));
  http::Query query(request.head.query());
  auto name = query.get("name");
  if (!name || name->empty()) co_return api::refuse(api::invalid_parameter("name", "is required"));
  bool force = CO_TRY(api::boolean_parameter(query, "force", false));
  auto removed = co_await library->remove(caller_of(request).owner, *name, force);
  if (!removed) co_return api::refuse(store_error(removed.error()));
  co_return Answer{.status = 204, .body = ""};
}

Task<ApiResult<Answer>> prune_images(Service& service, Request&) {
  runtime::ImageLibrary* library = CO_TRY(library_of(service.runtimes.standard()));
  auto removed = co_await library->prune();
  if (!removed) co_return api::refuse(store_error(removed.error()));
  co_return Answer{
      .body = json::print(bj::object{{"removed", strings(removed->names)}, {"freed", removed->freed}})};
}

}  // namespace

void add_image_routes(http::Router& router, Service& service) {
  mount(router, service, "GET", "/images", list_images);
  mount(router, service, "DELETE", "/images", remove_image);
  mount(router, service, "GET", "/images/inspect", inspect_image);
  mount(router, service, "GET", "/images/pull", look_at_pull);
  mount(router, service, "POST", "/images/pull", pull_image);
  mount(router, service, "POST", "/images/prune", prune_images);
}

}  // namespace osb::server
