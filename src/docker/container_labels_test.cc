#include "docker/container_labels.h"

#include <gtest/gtest.h>

namespace osb::docker {
namespace {

using runtime::SandboxSpec;

TEST(ContainerLabels, PeopleFindASandboxByItsId) {
  SandboxSpec spec{.handle = "h", .image = {}, .id = "i"};
  spec.life = {
      .expires = *parse_time("2026-01-02T03:04:05Z"), .renewal = "600", .extensions = {{"region", "eu"}}};
  spec.image.platform = "linux/arm64";
  Labels labels = labels_of(spec, "me", {}, {});
  EXPECT_EQ(labels[kIdLabel], "i");
  EXPECT_EQ(labels[kOwnerLabel], "me");
  EXPECT_EQ(labels[kHandleLabel], "h");
  EXPECT_EQ(labels[kExpiresLabel], "2026-01-02T03:04:05.000000+00:00");
  EXPECT_FALSE(labels.contains(kManualLabel));
  EXPECT_EQ(labels[kOsLabel], "linux");
  EXPECT_EQ(labels[kArchLabel], "arm64");
  EXPECT_EQ(labels[kRenewLabel], "600");
  EXPECT_EQ(labels["opensandbox.io/extensions.region"], "eu");
  EXPECT_EQ(container_name("i"), "sandbox-i");
}

TEST(ContainerLabels, OneWithoutAnExpirySaysSo) {
  SandboxSpec spec{.handle = "h", .image = {}, .id = "i"};
  spec.life.emplace();
  Labels labels = labels_of(spec, "me", {}, {});
  EXPECT_EQ(labels[kManualLabel], "true");
  for (const char* absent : {kExpiresLabel, kOsLabel, kArchLabel, kRenewLabel, kSnapshotLabel})
    EXPECT_FALSE(labels.contains(absent)) << absent;
}

TEST(ContainerLabels, OfOneThatWaitsNothingIsKnownButItsId) {
  Labels labels = labels_of({.handle = "h", .image = {}, .id = "i"}, "me", {}, {});
  EXPECT_EQ(labels[kIdLabel], "i");
  EXPECT_FALSE(labels.contains(kExpiresLabel) || labels.contains(kManualLabel));
}

TEST(ContainerLabels, NeitherRequestNorImageChoosesOurs) {
  SandboxSpec spec{.handle = "h", .image = {}, .id = "i"};
  spec.labels = {{"team", "red"}, {kOwnerLabel, "x"}, {kExpiresLabel, "x"}};
  const Labels of_image = {
      {"maintainer", "somebody"}, {kOwnerLabel, "y"},  {kIdLabel, "y"},
      {kExpiresLabel, "y"},       {kManualLabel, "y"}, {kSnapshotLabel, "y"},
      {kVolumesLabel, "y"},       {kEgressLabel, "y"}, {"opensandbox.io/extensions.a", "y"}};
  Labels labels = labels_of(spec, "me", of_image, {"v"});
  EXPECT_EQ(labels["team"], "red");
  EXPECT_EQ(labels[kOwnerLabel], "me");
  EXPECT_EQ(labels[kIdLabel], "i");
  for (const char* blank : {kExpiresLabel, kManualLabel, kSnapshotLabel, "opensandbox.io/extensions.a"})
    EXPECT_EQ(labels.at(blank), "") << blank;
  EXPECT_EQ(labels[kVolumesLabel], R"(["v"])");
  EXPECT_EQ(labels[kEgressLabel], "none");
  EXPECT_FALSE(labels.contains("maintainer")) << "the engine adds it";
}

TEST(ContainerLabels, ARestoredOneNamesItsSnapshot) {
  SandboxSpec spec{.handle = "h", .image = {}, .id = "i"};
  spec.image.id = "sha256:1";
  Labels labels = labels_of(spec, "me", {{kSnapshotLabel, "s"}, {kSnapshotOwnerLabel, "me"}}, {});
  EXPECT_EQ(labels[kSnapshotLabel], "s");
  EXPECT_EQ(labels[kSnapshotOwnerLabel], "");
}

TEST(ContainerLabels, ASecondNameIsAnother) {
  EXPECT_EQ(second_name(container_name("i"), "01234567-89ab"), "sandbox-i-01234567");
}

}  // namespace
}  // namespace osb::docker
