#include "image/manifest.h"

#include <gmock/gmock.h>

#include "base/machine.h"

namespace osb::image {
namespace {

using testing::HasSubstr;

const std::string kDigest = "sha256:" + std::string(64, 'a');

std::string layer(const std::string& type = "application/vnd.oci.image.layer.v1.tar+zstd") {
  return R"({"mediaType":")" + type + R"(","digest":")" + kDigest + R"(","size":7})";
}

std::string manifest(const std::string& layers) {
  return R"({"schemaVersion":2,"config":{"digest":")" + kDigest + R"(","size":3},"layers":[)" + layers + "]}";
}

std::string choice(const std::string& machine) {
  return R"({"digest":")" + kDigest + R"(","platform":{"os":"linux","architecture":")" + machine + R"("}})";
}

TEST(Manifests, AManifestOrAnIndex) {
  auto one = parse_manifest_or_index(manifest(layer()));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_TRUE(one->choices.empty());
  ASSERT_EQ(one->manifest.layers.size(), 1u);
  EXPECT_EQ(one->manifest.layers[0].size, 7u);
  EXPECT_EQ(one->manifest.layers[0].digest, std::string(64, 'a'));
  auto many = parse_manifest_or_index(R"({"manifests":[)" + choice("s390x") + "," + choice("amd64") + "]}");
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_TRUE(choose(many->choices, "linux/amd64"));
  EXPECT_THAT(choose(many->choices, "linux/arm64").error().message, HasSubstr("linux/s390x, linux/amd64"));
}

TEST(Manifests, WhatIsNeitherIsRefused) {
  std::string many;
  for (size_t i = 0; i <= kMaxImageLayers; ++i) many += (i ? "," : "") + layer();
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string("<html>"), std::string("null"),
        std::string(R"({"manifests":[]})"), std::string(R"({"manifests":1})"), manifest("1"), manifest("{}"),
        manifest(R"({"mediaType":"tar","digest":"sha256:abc"})"), manifest(layer("application/wasm")),
        manifest(many), std::string(R"({"schemaVersion":1,"fsLayers":[]})"),
        manifest(R"({"mediaType":"tar","size":-1,"digest":")" + kDigest + "\"}"),
        std::string(kMaxDocument + 1, ' ')}) {
    EXPECT_FALSE(parse_manifest_or_index(text)) << text.substr(0, 80);
  }
}

TEST(Manifests, AConfigurationIsOfThisMachine) {
  auto text = [](std::string_view machine, std::string_view os = "linux") {
    return R"({"os":")" + std::string(os) + R"(","architecture":")" + std::string(machine) +
           R"(","config":{"User":"app"},"rootfs":{"diff_ids":[")" + kDigest + "\"]}}";
  };
  auto config = parse_config_document(text(host_architecture()));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->config.user, "app");
  EXPECT_EQ(config->diff_ids.size(), 1u);
  EXPECT_EQ(parse_config_document(text("s390x")).error().code, Code::unsupported);
  EXPECT_EQ(parse_config_document(text(host_architecture(), "windows")).error().code, Code::unsupported);
  EXPECT_FALSE(parse_config_document("nonsense"));
}

TEST(Manifests, LayersAndTheirContentsAreAsMany) {
  EXPECT_TRUE(check_same_layers(2, 2));
  EXPECT_FALSE(check_same_layers(2, 1));
  EXPECT_FALSE(check_same_layers(0, 0));
  EXPECT_FALSE(check_same_layers(kMaxImageLayers + 1, kMaxImageLayers + 1));
}

}  // namespace
}  // namespace osb::image
