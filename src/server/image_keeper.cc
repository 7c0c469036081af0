#include "server/image_keeper.h"

#include <fmt/format.h>

namespace osb::server {

std::string kept_elsewhere(const runtime::Runtime& runtime) {
  return fmt::format(
      "This server keeps no images: those of its {0} runtime are the engine's. List, pull, commit and push "
      "them with the engine's own client ({0} images, {0} pull, {0} commit, {0} push).",
      runtime.name());
}

api::ApiResult<runtime::ImageLibrary*> library_of(runtime::Runtime& runtime) {
  if (runtime::ImageLibrary* library = runtime.images()) return library;
  return api::refuse({.status = 501, .code = "SANDBOX::UNSUPPORTED", .message = kept_elsewhere(runtime)});
}

}  // namespace osb::server
