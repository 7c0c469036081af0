#include "image/image.h"

#include <gmock/gmock.h>

#include "image/accounts.h"
#include "image/digest.h"
#include "image/index.h"
#include "json/decode.h"

namespace osb::image {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr char kPasswd[] =
    "root:x:0:0:root:/root:/bin/sh\nbroken\napp:x:1000:1001::/home/app:/bin/sh\n1234:x:7:7::/odd:\n";
constexpr char kGroup[] = "root:x:0:\nstaff:x:50:app\n";

ImageConfig resolved(const std::string& user) {
  ImageConfig config;
  config.user = user;
  auto done = resolve_user(config, kPasswd, kGroup);
  if (!done) config.user_name = "failed: " + done.error().message;
  return config;
}

TEST(Accounts, UsersOfTheImage) {
  struct Case {
    const char* user;
    uint32_t uid, gid;
    const char *name, *home;
  };
  for (const Case& c :
       {Case{"", 0, 0, "root", "/root"}, Case{"app", 1000, 1001, "app", "/home/app"},
        Case{"1000", 1000, 1001, "app", "/home/app"}, Case{"app:staff", 1000, 50, "app", "/home/app"},
        Case{"1000:5", 1000, 5, "app", "/home/app"}, Case{"4242", 4242, 0, "", ""},
        Case{"4242:4243", 4242, 4243, "", ""}, Case{"0", 0, 0, "root", "/root"}}) {
    ImageConfig config = resolved(c.user);
    EXPECT_EQ(config.uid, c.uid) << c.user;
    EXPECT_EQ(config.gid, c.gid) << c.user;
    EXPECT_EQ(config.user_name, c.name) << c.user;
    EXPECT_EQ(config.home, c.home) << c.user;
  }
  for (const char* bad : {"nobody", "app:nogroup", "-1", "65536", "1:65536", "99999999999"}) {
    EXPECT_TRUE(resolved(bad).user_name.starts_with("failed")) << bad;
  }
}

TEST(OciConfig, TakesWhatItKnows) {
  auto value = json::parse(R"({"Env":["A=1","B=x=y","A=2","broken","=x"],"User":"app","WorkingDir":"srv",
    "Entrypoint":["/e"],"Cmd":null,"Labels":{"k":"v"},"ExposedPorts":{"80/tcp":{}}})");
  ASSERT_TRUE(value);
  auto config = decode_oci_config(*value);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_THAT(config->env, ElementsAre(Pair("B", "x=y"), Pair("A", "2")));
  EXPECT_EQ(config->workdir, "/srv");
  EXPECT_THAT(config->entrypoint, ElementsAre("/e"));
  EXPECT_THAT(config->labels, ElementsAre(Pair("k", "v")));
  for (const char* bad :
       {R"({"Env":"A=1"})", R"({"User":1})", R"([])", R"({"Labels":[]})", R"({"User":"a\u0000"})"}) {
    auto wrong = json::parse(bad);
    ASSERT_TRUE(wrong) << bad;
    EXPECT_FALSE(decode_oci_config(*wrong)) << bad;
  }
}

Image sample() {
  Image image;
  image.layers = {std::string(64, 'a'), std::string(64, 'b')};
  image.config.env = {{"A", "1"}};
  image.config.user = "app";
  image.config.uid = 7;
  image.config.labels = {{"k", "v"}};
  image.bytes = 5;
  image.id = std::string(64, 'c');
  return image;
}

TEST(Index, ReadsWhatItWrote) {
  Index index;
  index.images[sample().id] = sample();
  index.names["one"] = index.names["two:1"] = sample().id;
  auto again = decode_index(encode(index));
  ASSERT_TRUE(again) << again.error().message;
  const Image* found = again->find("two:1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layers, sample().layers);
  EXPECT_EQ(found->config, sample().config);
  EXPECT_EQ(found->bytes, 5u);
  EXPECT_FALSE(again->find("three"));
}

TEST(Index, FindsByTheBeginningOfAnId) {
  Index index;
  for (const char* start : {"aaaaaaaa1", "aaaaaaaa2", "bbbbbbbbb"}) {
    Image image = sample();
    image.id = start + std::string(55, 'c');
    index.images[image.id] = image;
  }
  index.images["bbbbbbbbb" + std::string(55, 'c')].owner = "somebody";
  auto one = index.find_id("aaaaaaaa1");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_TRUE((*one)->id.starts_with("aaaaaaaa1c"));
  EXPECT_TRUE(index.find_id((*one)->id));
  EXPECT_EQ(index.find_id("aaaaaaaa").error().code, Code::invalid_argument) << "of two";
  EXPECT_EQ(index.find_id("aaaaaaaa3").error().code, Code::not_found);
  EXPECT_EQ(index.find_id("bbbbbbb").error().code, Code::not_found) << "too short";
  EXPECT_EQ(index.find_id("").error().code, Code::not_found);
  EXPECT_TRUE(index.find_id("bbbbbbbb")) << "whoever asks";
  EXPECT_TRUE(index.find_id("bbbbbbbb", "somebody"));
  EXPECT_EQ(index.find_id("bbbbbbbb", "another").error().code, Code::not_found);
}

TEST(Index, RefusesNonsense) {
  std::string good = encode([] {
    Index index;
    index.images[sample().id] = sample();
    index.names["one"] = sample().id;
    return index;
  }());
  ASSERT_TRUE(decode_index(good));
  auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const std::string& bad :
       {std::string(), std::string("{}"), std::string("[]"), good.substr(0, good.size() / 2),
        with("\"version\":1", "\"version\":2"), with(std::string(64, 'a'), "../../etc"),
        with("\"one\":\"" + sample().id, "\"one\":\"" + std::string(64, 'd')),
        with("\"id\":\"" + sample().id, "\"id\":\"short")}) {
    EXPECT_FALSE(decode_index(bad)) << bad;
  }
}

TEST(ImageId, DependsOnLayersAndConfigOnly) {
  ASSERT_TRUE(load_libraries());
  Image a = sample(), b = sample();
  b.imported = WallTime(std::chrono::seconds(5));
  b.bytes = 9;
  EXPECT_EQ(compute_id(a), compute_id(b));
  b.config.env.emplace_back("B", "2");
  EXPECT_NE(compute_id(a), compute_id(b));
  EXPECT_TRUE(is_hex_digest(compute_id(a)));
}

TEST(Digest, KnownValues) {
  ASSERT_TRUE(load_libraries());
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(parse_digest("sha256:" + sha256("")));
  for (const char* bad : {"", "sha256:", "sha256:xyz", "sha512:00",
                          "md5:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}) {
    EXPECT_FALSE(parse_digest(bad)) << bad;
  }
}

}  // namespace
}  // namespace osb::image
