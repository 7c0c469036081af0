#include "image/described.h"

namespace osb::image {
namespace {

constexpr int kMostLevels = 3;  // of indexes
constexpr int kMostAsked = 16;  // documents behind them

class Search {
 public:
  Search(std::string_view platform, const Documents& documents)
      : platform_(platform), documents_(documents) {}

  Result<Described> from(std::string digest, std::string_view text, int level) {
    auto parsed = TRY(parse_manifest_or_index(text));
    if (parsed.choices.empty()) return whole(std::move(digest), std::move(parsed.manifest));
    if (level == kMostLevels) return fail(Code::too_large, "more than 3 indexes within each other");
    Result<Described> found = fail(Code::unsupported, "an index of nothing");
    for (const Descriptor& choice : TRY(choose(parsed.choices, platform_))) {
      if (++asked_ > kMostAsked) return fail(Code::too_large, "more than 16 manifests to look at");
      found = from(choice.digest, TRY(documents_.manifest(choice.digest)), level + 1);
      // One that turns out to be of another machine, or no image at all: the next may be.
      if (found || found.error().code != Code::unsupported) break;
    }
    return found;
  }

 private:
  Result<Described> whole(std::string digest, Manifest manifest) {
    auto config = TRY(parse_config_document(TRY(documents_.config(manifest.config.digest))));
    TRY(check_same_layers(manifest.layers.size(), config.diff_ids.size()));
    return Described{std::move(digest), std::move(manifest), std::move(config)};
  }

  std::string_view platform_;
  const Documents& documents_;
  int asked_ = 0;
};

}  // namespace

Result<Described> describe(std::string digest, std::string_view text, std::string_view platform,
                           const Documents& documents) {
  return Search(platform, documents).from(std::move(digest), text, 0);
}

}  // namespace osb::image
