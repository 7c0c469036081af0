#include "server/preview_host.h"

#include <gmock/gmock.h>

namespace osb::server {
namespace {

const std::string kId = "0198c0de-0000-7000-8000-000000000001";
const std::string kOther = "0198c0de-0000-7000-8000-000000000002";
const EndpointTokens kTokens(std::string(kSecretBytes, 's'));
const PreviewHosts kPreviews(kTokens, "localhost");

TEST(PreviewHost, LeadsToItsSandboxAndPort) {
  for (const std::string& id : {kId, kOther}) {
    for (uint16_t port : {1, 80, 3000, 65535}) {
      std::string name = *kPreviews.name(id, port);
      EXPECT_LE(name.find('.'), 63u) << "a label of a host name";
      EXPECT_THAT(name, testing::Not(testing::HasSubstr("0198c0de")));
      for (const std::string& host : {name, name + ":8080"}) {
        auto preview = kPreviews.read(host);
        ASSERT_TRUE(preview) << host;
        EXPECT_EQ(preview->id, id);
        EXPECT_EQ(preview->port, port);
      }
    }
  }
}

TEST(PreviewHost, DoesNotKnowCases) {
  std::string name = *kPreviews.name(kId, 3000);
  for (char& c : name) c = static_cast<char>(std::toupper(c));
  EXPECT_EQ(kPreviews.read(name)->id, kId);
}

TEST(PreviewHost, OnlyWhatWasWrittenHereIsRead) {
  std::string name = *kPreviews.name(kId, 3000);
  EXPECT_FALSE(PreviewHosts(EndpointTokens(std::string(kSecretBytes, 'x')), "localhost").read(name));
  EXPECT_FALSE(kPreviews.read("3001" + name.substr(4))) << "a handle is for its port";
  size_t begin = name.find('-') + 1;
  for (size_t i = begin; i < name.find('.'); ++i) {
    std::string other = name;
    other[i] = other[i] == 'a' ? 'b' : 'a';
    EXPECT_TRUE(kPreviews.is_preview(other)) << other;
    EXPECT_FALSE(kPreviews.read(other)) << other;
  }
}

TEST(PreviewHost, OtherNamesAreNone) {
  std::string name = *kPreviews.name(kId, 3000);
  std::string label = name.substr(0, name.find('.'));
  for (const std::string& host :
       {std::string(), std::string("localhost"), std::string("localhost:8080"), std::string(".localhost"),
        label, "x." + name, label + "localhost", label + ".localhost.", label + ".other", "0" + name,
        "+" + name, "-" + name, label + "a.localhost", label.substr(0, label.size() - 1) + ".localhost",
        "70000" + name.substr(4), "0" + name.substr(4), std::string("[::1]:80")}) {
    EXPECT_FALSE(kPreviews.is_preview(host)) << host;
    EXPECT_FALSE(kPreviews.read(host)) << host;
  }
}

TEST(PreviewHost, WithoutADomainThereAreNone) {
  PreviewHosts none(kTokens, "");
  EXPECT_FALSE(none.name(kId, 3000));
  EXPECT_FALSE(none.is_preview(kPreviews.name(kId, 3000)->substr(0, 50)));
  EXPECT_FALSE(kPreviews.name("not-a-uuid", 3000));
}

}  // namespace
}  // namespace osb::server
