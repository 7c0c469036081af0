#include "docker/image_pulls.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "image/pull_reference.h"

namespace osb::docker {
namespace {

using Kind = CreateFailure::Kind;

// Of an image that is here, but not for this machine.
constexpr Code kForOthers = Code::unsupported;

std::unexpected<CreateFailure> failed(Kind kind, Error error) {
  return std::unexpected(CreateFailure{kind, std::move(error)});
}

bool says(const Error& error, std::string_view words) {
  return error.message.find(words) != std::string::npos;
}

bool is_away(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::timeout || error.code == Code::cancelled;
}

// The name becomes a part of a path of the engine's API: one that leads elsewhere is no image's.
bool names_an_image(std::string_view reference) {
  return std::ranges::none_of(split(reference, '/'), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

Error not_pulled(Error error, const ImageRequest& request) {
  error.message += fmt::format(
      "; images are the engine's, and it may not pull this one ({}): bring it there with docker pull {}",
      request.pull == ImageRequest::Pull::never ? "the request says never"
                                                : "registry.pull_policy is \"never\"",
      request.reference.substr(0, 300));
  return error;
}

// What the registry gave is not what its documents promise, or nothing that can be unpacked.
bool is_spoilt(const Error& error) {
  static constexpr std::string_view kWords[] = {"verification failed",
                                                "failed to register layer",
                                                "missing signature key",
                                                "missing or empty Content-Type",
                                                "no matching manifest",
                                                "unsupported media type",
                                                "don't match image configuration",
                                                "invalid character",
                                                "unexpected end of JSON"};
  return std::ranges::any_of(kWords, [&](std::string_view words) { return says(error, words); });
}

// A registry, or what stands before it, has refused with a page for people: its status says what is wrong,
// and the words of the page, which the engine quotes, nothing.
std::optional<Kind> kind_of_page(const Error& error) {
  static constexpr std::string_view kWords = "error parsing HTTP ";
  size_t at = error.message.find(kWords);
  if (at == std::string::npos) return std::nullopt;
  std::string_view status = std::string_view(error.message).substr(at + kWords.size(), 4);
  if (status == "401 " || status == "403 ") return Kind::image_refused;
  if (status == "404 ") return Kind::image_not_found;
  return Kind::image_unreachable;
}

}  // namespace

struct ImagePulls::Pull {
  Pull(const io::Executor& executor, std::string name_) : name(std::move(name_)), done(executor) {}
  std::string name;
  std::string progress = "asking the registry";
  io::Event done;
  Result<void> outcome = fail(Code::cancelled, "the server ends");
};

bool runs_on(std::string_view machine, std::string_view platform) {
  auto usual = [](std::string_view name) {
    if (name == "x86_64") return std::string_view("amd64");
    return name == "aarch64" || name == "arm64v8" ? std::string_view("arm64") : name;
  };
  std::string_view here = usual(machine), there = usual(platform.substr(platform.find('/') + 1));
  if (here.empty() || there.empty() || here == there) return true;
  return (here == "amd64" && there == "386") || (here == "arm64" && there == "arm");
}

// An engine tells all of these in words, with status 404 or 500, or in the last line of a pull that was fine.
CreateFailure pull_failure(Error error) {
  if (is_away(error)) return {Kind::unavailable, std::move(error)};
  if (auto kind = kind_of_page(error)) return {*kind, std::move(error)};
  if (says(error, "no space left on device") || says(error, "disk quota exceeded")) {
    error.code = Code::exhausted;
    return {Kind::image_invalid, std::move(error)};
  }
  if (says(error, "unauthorized") || says(error, "denied") || says(error, "authentication") ||
      says(error, "no basic auth"))
    return {Kind::image_refused, std::move(error)};
  if (error.code == Code::not_found || says(error, "manifest unknown") || says(error, "not found") ||
      says(error, "unknown blob"))
    return {Kind::image_not_found, std::move(error)};
  if (is_spoilt(error)) return {Kind::image_invalid, std::move(error)};
  return {Kind::image_unreachable, std::move(error)};
}

ImagePulls::ImagePulls(io::Executor executor, Engine& engine, ImageRequest::Pull policy,
                       std::string default_registry)
    : executor_(executor),
      engine_(engine),
      policy_(policy),
      default_registry_(std::move(default_registry)),
      tasks_(executor) {}

Task<Created<Image>> ImagePulls::look(ImageRequest request) {
  if (!names_an_image(request.reference))
    co_return failed(Kind::image_not_found, {Code::not_found, 0, "no such image: " + request.reference});
  auto image = co_await engine_.image(request.reference);
  if (!image && is_away(image.error())) co_return failed(Kind::unavailable, std::move(image.error()));
  if (!image) co_return failed(Kind::image_not_found, std::move(image.error()));
  if (!request.platform.empty() && image->platform != request.platform) {
    co_return failed(Kind::image_not_found,
                     {Code::not_found, 0, "the image that is here is for " + image->platform});
  }
  // A snapshot is of a container that ran here.
  if (!request.platform.empty() || !request.id.empty()) co_return std::move(*image);
  auto machine = co_await engine_.machine();
  if (!machine) co_return failed(Kind::unavailable, std::move(machine.error()));
  if (runs_on(*machine, image->platform)) co_return std::move(*image);
  co_return failed(
      Kind::image_not_found,
      {kForOthers, 0,
       fmt::format("the image that is here is for {}, and the engine's machine is {}; a request for "
                   "it has to name its platform",
                   image->platform, *machine)});
}

Task<Created<Image>> ImagePulls::find(std::string handle, ImageRequest request) {
  using Policy = ImageRequest::Pull;
  if (!request.id.empty()) {
    // Of a snapshot: no registry has it.
    request.reference = request.id;
    request.platform.clear();
    co_return co_await look(std::move(request));
  }
  // An operator who said never meant the network, not a default for requests.
  Policy policy = policy_ == Policy::never ? Policy::never : request.pull.value_or(policy_);
  auto image = co_await look(request);
  bool missing = !image && image.error().kind == Kind::image_not_found;
  if (!image && !missing) co_return image;
  if (missing && policy == Policy::never)
    co_return failed(Kind::image_not_found, not_pulled(std::move(image.error().error), request));
  if (policy == Policy::never || (policy == Policy::if_missing && image)) co_return image;
  auto pulled = co_await pull(std::move(handle), request);
  if (!pulled) {
    if (missing && image.error().error.code == kForOthers)
      pulled.error().error.message += "; " + image.error().error.message;
    co_return std::unexpected(std::move(pulled.error()));
  }
  auto found = co_await look(std::move(request));
  if (!found && found.error().error.code == kForOthers) found.error().kind = Kind::image_invalid;
  co_return found;
}

Task<Created<void>> ImagePulls::pull(std::string handle, ImageRequest request) {
  auto reference = image::parse_pull_reference(request.reference, default_registry_);
  if (!reference) co_return failed(Kind::image_not_found, std::move(reference.error()));
  std::optional<RegistryLogin> login;
  if (request.auth)
    login = RegistryLogin{request.auth->username, request.auth->password, reference->registry};
  std::string key = reference->name() + " " + request.platform;
  // One client's password opens nothing for another's create.
  if (login) key += " " + to_hex(sha256_digest(login->username + '\0' + login->password));
  PullPtr& pull = running_[key];
  if (!pull) {
    pull = std::make_shared<Pull>(executor_, reference->name());
    // As the client wrote it: which registry a short name means is the engine's to say.
    std::string name = request.reference.substr(0, request.reference.find('@'));
    size_t colon = name.find(':', name.rfind('/') == name.npos ? 0 : name.rfind('/'));
    if (colon != name.npos) name.resize(colon);
    tasks_.spawn(run(pull, std::move(name), reference->version(), request.platform, std::move(login)));
  }
  PullPtr mine = pull;
  waiting_[handle] = mine;
  Cleanup forget;
  forget.push([this, handle] { waiting_.erase(handle); });
  co_await mine->done.wait();
  if (!mine->outcome) {
    auto failure = pull_failure(mine->outcome.error());
    // The engine does not always say of what.
    if (!says(failure.error, reference->registry))
      failure.error.message = reference->name() + ": " + failure.error.message;
    co_return std::unexpected(std::move(failure));
  }
  co_return Created<void>();
}

Task<> ImagePulls::run(PullPtr pull, std::string name, std::string tag, std::string platform,
                       std::optional<RegistryLogin> login) {
  // Also when this is cancelled: whoever waits is told.
  Cleanup over;
  over.push([this, pull] {
    std::erase_if(running_, [&](const auto& entry) { return entry.second == pull; });
    pull->done.set();
  });
  pull->outcome =
      co_await engine_.pull(std::move(name), std::move(tag), std::move(platform), std::move(login),
                            [pull](std::string text) { pull->progress = std::move(text); });
}

std::string ImagePulls::progress(const std::string& handle) const {
  auto found = waiting_.find(handle);
  return found == waiting_.end() ? "" : "pulling " + found->second->name + ": " + found->second->progress;
}

}  // namespace osb::docker
