// What registries say: documents, challenges, addresses; names of images in them; and what the processes that
// bring images here tell each other. Understood or refused; what is understood has only what may become a
// name or a request.
#include "check.h"
#include "image/layer_pack.h"
#include "image/manifest.h"
#include "image/pull_reference.h"
#include "image/reference.h"
#include "registry/challenge.h"
#include "registry/fetch_messages.h"
#include "registry/keeper_messages.h"
#include "registry/login.h"
#include "registry/url.h"

using namespace osb;

namespace {

void check_reference(std::string_view text) {
  auto reference = image::parse_pull_reference(text, image::kDockerHub);
  if (!reference) return;
  std::string name = reference->name();
  auto again = image::parse_pull_reference(name, "other.example");
  CHECK(again && again->name() == name);
  CHECK(image::check_name(name));
  // Both go into a path of a request, and lead nowhere else in it. Two dots within a tag are two dots.
  for (const std::string& part : {reference->repository, reference->version()})
    CHECK(part.find_first_of(" \r\n?#%\\") == part.npos && ("/" + part + "/").find("/../") == part.npos);
}

void check_url(std::string_view text) {
  auto url = registry::parse_url(text);
  if (!url) return;
  CHECK(!url->host.empty() && url->port != 0 && url->target.starts_with('/'));
  CHECK(url->target.find_first_of(" \r\n#") == std::string::npos);
  auto again = registry::parse_url(url->origin() + url->target);
  CHECK(again && again->same_origin(*url) && again->target == url->target);
  if (auto next = registry::resolve(*url, text)) CHECK(next->target.starts_with('/'));
}

void check_documents(std::string_view text) {
  if (auto found = image::parse_manifest_or_index(text)) {
    CHECK(found->manifest.layers.size() <= image::kMaxImageLayers);
    (void)image::choose(found->choices, "linux/amd64");
    for (const auto& layer : found->manifest.layers) CHECK(layer.digest.size() == 64);
  }
  (void)image::parse_manifest(text);
  if (auto config = image::parse_config_document(text)) {
    for (const std::string& id : config->diff_ids) CHECK(id.size() == 64);
  }
}

void check_messages(std::string_view text) {
  if (auto event = registry::decode_fetch_event(text)) {
    CHECK(event->plan.layers.size() <= image::kMaxImageLayers);
    auto again = registry::decode_fetch_event(registry::encode(*event));
    CHECK(again && again->kind == event->kind);
  }
  if (auto order = registry::decode_fetch_order(text))
    CHECK(registry::decode_fetch_order(registry::encode(*order)));
  if (auto order = registry::decode_keeper_order(text))
    CHECK(registry::decode_keeper_order(registry::encode(*order)));
  if (auto news = registry::decode_keeper_news(text))
    CHECK(registry::decode_keeper_news(registry::encode(*news)));
  (void)registry::decode_needs(text);
  if (auto content = registry::decode_push_content(text)) {
    for (const auto& layer : content->layers) CHECK(layer.blob.digest.size() == 64 && layer.file >= -1);
    CHECK(registry::decode_push_content(registry::encode(*content)));
  }
  if (auto form = image::parse_form(text)) CHECK(image::parse_form(image::encode(*form)) == *form);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  check_reference(text);
  check_url(text);
  check_documents(text);
  check_messages(text);
  if (auto challenges = registry::parse_challenges(text)) CHECK(challenges->size() <= 8);
  if (auto logins = registry::parse_login_file(text)) {
    for (const auto& [host, login] : *logins) CHECK(!login.username.empty());
  }
  return 0;
}
