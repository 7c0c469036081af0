#include "image/described.h"

#include <gmock/gmock.h>

#include <map>

#include "base/machine.h"
#include "image/digest.h"
#include "image/libraries.h"

namespace osb::image {
namespace {

using testing::HasSubstr;

const std::string kPlatform = "linux/" + std::string(host_architecture());
const char* const kIndex = "application/vnd.oci.image.index.v1+json";
const char* const kManifest = "application/vnd.oci.image.manifest.v1+json";

// Documents by their digests, as a registry has them.
class Shelf {
 public:
  Shelf() { EXPECT_TRUE(load_libraries()); }  // for digests
  std::string put(std::string text) {
    std::string digest = sha256(text);
    texts_[digest] = std::move(text);
    return digest;
  }
  std::string image(const std::string& user, std::string_view machine = host_architecture()) {
    std::string layer = "sha256:" + std::string(64, 'a');
    std::string config = R"({"os":"linux","architecture":")" + std::string(machine) +
                         R"(","config":{"User":")" + user + R"("},"rootfs":{"diff_ids":[")" + layer + "\"]}}";
    return put(R"({"schemaVersion":2,"config":{"digest":"sha256:)" + put(config) +
               R"("},"layers":[{"mediaType":"tar","size":1,"digest":")" + layer + "\"}]}");
  }
  static std::string entry(const std::string& digest, const char* type, std::string_view machine = "") {
    std::string platform =
        machine.empty() ? "" : R"(,"platform":{"os":"linux","architecture":")" + std::string(machine) + "\"}";
    return R"({"mediaType":")" + std::string(type) + R"(","digest":"sha256:)" + digest + "\"" + platform +
           "}";
  }
  std::string index(const std::string& entries) { return put(R"({"manifests":[)" + entries + "]}"); }

  Result<Described> describe(const std::string& digest) {
    auto find = [this](const std::string& wanted) -> Result<std::string> {
      ++asked;
      auto found = texts_.find(wanted);
      if (found == texts_.end()) return fail(Code::not_found, "no " + wanted);
      return found->second;
    };
    return image::describe(digest, texts_.at(digest), kPlatform, {.manifest = find, .config = find});
  }

  int asked = 0;

 private:
  std::map<std::string, std::string> texts_;
};

std::string user_of(const Result<Described>& found) {
  return found ? found->config.config.user : "refused: " + found.error().message;
}

TEST(Described, AManifestAndAnIndex) {
  Shelf shelf;
  std::string image = shelf.image("one");
  EXPECT_EQ(user_of(shelf.describe(image)), "one");
  auto found = shelf.describe(shelf.index(Shelf::entry(shelf.image("other", "s390x"), kManifest, "s390x") +
                                          "," + Shelf::entry(image, kManifest, host_architecture())));
  ASSERT_EQ(user_of(found), "one");
  EXPECT_EQ(found->digest, image) << "the manifest's, not the index's";
}

TEST(Described, IndexesWithinIndexes) {
  Shelf shelf;
  std::string inner = shelf.index(Shelf::entry(shelf.image("deep"), kManifest, host_architecture()));
  EXPECT_EQ(user_of(shelf.describe(shelf.index(Shelf::entry(inner, kIndex)))), "deep");
  EXPECT_EQ(user_of(shelf.describe(shelf.index(Shelf::entry(inner, kIndex, host_architecture())))), "deep");
  std::string outer = shelf.index(Shelf::entry(shelf.index(Shelf::entry(inner, kIndex)), kIndex));
  EXPECT_EQ(user_of(shelf.describe(outer)), "deep") << "three levels";
  EXPECT_EQ(shelf.describe(shelf.index(Shelf::entry(outer, kIndex))).error().code, Code::too_large);
}

TEST(Described, WhatSaysNothingIsLookedAt) {
  Shelf shelf;
  std::string elsewhere = shelf.index(Shelf::entry(shelf.image("other", "s390x"), kManifest, "s390x"));
  std::string here = shelf.index(Shelf::entry(shelf.image("here"), kManifest));
  std::string wasm =
      shelf.put(R"({"config":{"digest":"sha256:)" + std::string(64, 'b') +
                R"("},"layers":[{"mediaType":"wasm","digest":"sha256:)" + std::string(64, 'b') + "\"}]}");
  EXPECT_EQ(
      user_of(shelf.describe(shelf.index(Shelf::entry(elsewhere, kIndex) + "," +
                                         Shelf::entry(wasm, kManifest) + "," + Shelf::entry(here, kIndex)))),
      "here");
  // What says that it is for this machine comes first.
  EXPECT_EQ(
      user_of(shelf.describe(shelf.index(Shelf::entry(here, kIndex) + "," +
                                         Shelf::entry(shelf.image("said"), kManifest, host_architecture())))),
      "said");
  auto none = shelf.describe(shelf.index(Shelf::entry(elsewhere, kIndex)));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::unsupported);
  EXPECT_THAT(none.error().message, HasSubstr("linux/s390x"));
}

TEST(Described, HowManyAreLookedAtIsBounded) {
  Shelf shelf;
  std::string entries;
  for (int i = 0; i < 100; ++i) {
    entries +=
        (i ? "," : "") +
        Shelf::entry(shelf.index(Shelf::entry(shelf.image(std::to_string(i), "s390x"), kManifest, "s390x")),
                     kIndex);
  }
  EXPECT_EQ(shelf.describe(shelf.index(entries)).error().code, Code::too_large);
  EXPECT_LE(shelf.asked, 16);
}

TEST(Described, WhatIsMissingIsSaid) {
  Shelf shelf;
  auto found = shelf.describe(shelf.index(Shelf::entry(std::string(64, 'c'), kIndex)));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::not_found);
}

}  // namespace
}  // namespace osb::image
