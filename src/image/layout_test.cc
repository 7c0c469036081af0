#include "image/layout.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image/digest.h"
#include "image/inspect.h"
#include "image/test_tar.h"

namespace osb::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

using Files = std::vector<std::pair<std::string, std::string>>;

// Through the same doors as an import: listed by inspect_bytes(), read where they lie.
Result<std::vector<ArchivedImage>> read(const Files& files, Inspection::Kind* kind = nullptr) {
  TestTar tar;
  for (const auto& [name, content] : files) tar.file(name, content);
  Fd file(::memfd_create("archive", MFD_CLOEXEC));
  TRY(write_all(file.get(), tar.bytes()));
  auto found =
      TRY(parse_inspection(TRY(inspect_bytes({.fd = file.get(), .offset = 0, .size = tar.bytes().size()}))));
  if (kind) *kind = found.kind;
  if (found.kind != Inspection::Kind::image) return fail(Code::unsupported, "no image archive");
  auto archive = TRY(ArchiveFiles::of_archive(std::move(file), std::move(found.members)));
  return read_layout(archive);
}

std::string config(const std::string& machine, size_t layers = 1) {
  std::string ids;
  for (size_t i = 0; i < layers; ++i) ids += (i ? ",\"sha256:" : "\"sha256:") + sha256("layer") + "\"";
  return R"({"os":"linux","architecture":")" + machine +
         R"(","config":{"Env":["A=1"],"User":"app"},"rootfs":{"diff_ids":[)" + ids + "]}}";
}

std::string here() { return std::string(host_architecture()); }

Files docker(const std::string& manifest, const std::string& configuration) {
  return {{"c.json", configuration}, {"l.tar", "layer"}, {"manifest.json", manifest}};
}

class LayoutTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(load_libraries()); }
};

constexpr char kManifest[] = R"([{"Config":"c.json","RepoTags":["app:1","app:2"],"Layers":["l.tar"]}])";

TEST_F(LayoutTest, DockerArchive) {
  auto images = read(docker(kManifest, config(here())));
  ASSERT_TRUE(images) << images.error().message;
  ASSERT_EQ(images->size(), 1u);
  const ArchivedImage& image = images->front();
  EXPECT_THAT(image.names, ElementsAre("app:1", "app:2"));
  EXPECT_THAT(image.config.env, ElementsAre(Pair("A", "1")));
  ASSERT_EQ(image.layers.size(), 1u);
  EXPECT_EQ(image.layers[0].diff_id, sha256("layer"));
  EXPECT_EQ(image.layers[0].bytes.size, 5u);
  // Header and content of c.json come first, then the layer's header.
  EXPECT_EQ(image.layers[0].bytes.offset, 512u + 512u + 512u);
}

TEST_F(LayoutTest, DockerArchivesThatLie) {
  struct Case {
    std::string manifest, configuration, said;
  };
  std::string good = config(here());
  for (const Case& c :
       {Case{"[]", good, "1 to 64"}, Case{"{}", good, "manifest"}, Case{"[", good, "manifest.json"},
        Case{R"([{"Config":"none","Layers":["l.tar"]}])", good, "not in the archive"},
        Case{R"([{"Config":"c.json","Layers":["../l.tar"]}])", good, "not in the archive"},
        Case{R"([{"Config":"c.json","Layers":["/etc/passwd"]}])", good, "not in the archive"},
        Case{R"([{"Config":"c.json","Layers":[]}])", good, "without layers"},
        Case{R"([{"Config":"c.json","Layers":[1]}])", good, ""},
        Case{kManifest, config(here(), 2), "about 2 layers"}, Case{kManifest, "{}", "about 0 layers"},
        Case{kManifest, config("pdp11"), "linux/pdp11"},
        Case{kManifest, R"({"rootfs":{"diff_ids":["md5:1"]}})", "sha256"}, Case{kManifest, "no json", ""}}) {
    auto images = read(docker(c.manifest, c.configuration));
    ASSERT_FALSE(images) << c.manifest << c.configuration;
    EXPECT_THAT(images.error().message, HasSubstr(c.said));
  }
}

std::string descriptor(const std::string& type, const std::string& content, const std::string& more = "") {
  return R"({"mediaType":")" + type + R"(","digest":"sha256:)" + sha256(content) + "\"" + more + "}";
}

Files oci(const std::string& layer_type = "application/vnd.oci.image.layer.v1.tar",
          const std::string& machine = "") {
  std::string configuration = config(here());
  std::string manifest = R"({"config":)" + descriptor("config", configuration) + R"(,"layers":[)" +
                         descriptor(layer_type, "layer") + "]}";
  std::string platform =
      machine.empty() ? "" : R"(,"platform":{"os":"linux","architecture":")" + machine + "\"}";
  std::string index =
      R"({"manifests":[)" +
      descriptor("application/vnd.oci.image.manifest.v1+json", manifest,
                 platform + R"(,"annotations":{"org.opencontainers.image.ref.name":"app:3"})") +
      "]}";
  return {{"oci-layout", "{}"},
          {"blobs/sha256/" + sha256("layer"), "layer"},
          {"blobs/sha256/" + sha256(configuration), configuration},
          {"blobs/sha256/" + sha256(manifest), manifest},
          {"index.json", index}};
}

TEST_F(LayoutTest, OciLayout) {
  auto images = read(oci());
  ASSERT_TRUE(images) << images.error().message;
  EXPECT_THAT(images->front().names, ElementsAre("app:3"));
  EXPECT_EQ(images->front().layers[0].blob_digest, sha256("layer"));
  EXPECT_TRUE(read(oci("application/vnd.docker.image.rootfs.diff.tar.gzip", here())));
}

TEST_F(LayoutTest, OciLayoutsThatLie) {
  auto other = read(oci("application/vnd.oci.image.layer.v1.tar", "pdp11"));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("no image for linux/"));
  EXPECT_FALSE(read(oci("application/wasm")));
  for (size_t i = 2; i < 4; ++i) {  // the configuration and the manifest
    Files files = oci();
    files[i].second.back() = ' ';
    auto changed = read(files);
    ASSERT_FALSE(changed) << files[i].first;
    EXPECT_THAT(changed.error().message, HasSubstr("promises"));
  }
  Files missing = oci();
  missing.erase(missing.begin() + 1);
  EXPECT_FALSE(read(missing));
}

TEST_F(LayoutTest, RootsAreNoImageArchives) {
  Inspection::Kind kind = Inspection::Kind::image;
  (void)read({{"etc/passwd", "x"}, {"manifest.json", "{}"}}, &kind);
  EXPECT_EQ(kind, Inspection::Kind::root);
  (void)read({{"bin/sh", "x"}}, &kind);
  EXPECT_EQ(kind, Inspection::Kind::root);
}

TEST_F(LayoutTest, ReportsOfAWorkerAreNotTrusted) {
  for (const char* text : {"", "{}", "[]", R"({"kind":1})", R"({"kind":"image","members":1})",
                           R"({"kind":"image","members":[1]})"}) {
    EXPECT_FALSE(parse_inspection(text)) << text;
  }
  auto odd = parse_inspection(
      R"({"kind":"image","members":[["a",-1,5,""],["b",0,9223372036854775807,""],["c",1]]})");
  ASSERT_TRUE(odd);
  Fd file(::memfd_create("archive", MFD_CLOEXEC));
  auto files = ArchiveFiles::of_archive(std::move(file), odd->members);
  ASSERT_TRUE(files);
  for (const char* name : {"a", "b", "c"}) EXPECT_FALSE(files->has(name)) << name;
}

TEST_F(LayoutTest, LinksWithinAnArchive) {
  Members members{{"x/layer.tar", {0, 0, "../y/layer.tar"}},
                  {"y/layer.tar", {0, 3, ""}},
                  {"loop", {0, 0, "loop"}},
                  {"out", {0, 0, "../../etc/passwd"}}};
  Fd file(::memfd_create("archive", MFD_CLOEXEC));
  ASSERT_TRUE(write_all(file.get(), "abc"));
  auto files = ArchiveFiles::of_archive(std::move(file), members);
  ASSERT_TRUE(files);
  EXPECT_EQ(files->read("x/layer.tar").value_or("?"), "abc");
  EXPECT_FALSE(files->has("loop"));
  EXPECT_FALSE(files->has("out"));
}

}  // namespace
}  // namespace osb::image
