#include "image/commit.h"

#include <gtest/gtest.h>

#include "image/libraries.h"

namespace osb::image {
namespace {

TEST(Commit, PartsOfASnapshot) {
  const std::string a(64, 'a'), b(64, 'b');
  auto parts =
      parse_snapshot("boot x\nimage " + a + "\nsize 1 2\nlayer root " + b + "\nlayer usr " + a + "\n");
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->image, a);
  EXPECT_EQ(parts->layers, (std::vector<SandboxLayer>{{"root", b}, {"usr", a}}));
  EXPECT_TRUE(parse_snapshot("size 0 0\n"));
  // A staged one is no part of anything yet.
  for (const std::string& bad :
       {"new root " + a, std::string("layer root x"), "layer ../x " + a, "layer a/b " + a, "layer " + a,
        std::string("image x"), std::string("words")})
    EXPECT_FALSE(parse_snapshot(bad)) << bad;
}

Index index_with(const std::string& name, const std::string& owner) {
  Index index;
  Image image;
  image.id = std::string(64, 'c');
  image.owner = owner;
  index.names[name] = image.id;
  index.images[image.id] = image;
  return index;
}

TEST(Commit, NamesThatCanBeTaken) {
  EXPECT_TRUE(check_taken({}, "team/app:1", "one"));
  EXPECT_TRUE(check_taken(index_with("x", "one"), "x", "one")) << "it moves";
  for (const char* name : {"", "host", "-x", "a b", "a@sha256:0", "opensandbox-snapshots:x"}) {
    auto refused = check_taken({}, name, "one");
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
  }
  for (const char* owner : {"two", ""}) {  // another's; imported or pulled
    auto refused = check_taken(index_with("x", owner), "x", "one");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::already_exists);
  }
}

TEST(Commit, RecordsAreReadAgain) {
  ASSERT_TRUE(load_libraries());
  Index index = index_with("x", "one");
  Image& image = index.images.begin()->second;
  image.base = "host";
  image.over = {{"usr", std::string(64, 'a')}, {"root", std::string(64, 'b')}};
  image.config.ports = {"80/tcp"};
  auto again = decode_index(encode(index));
  ASSERT_TRUE(again) << again.error().message;
  const Image* found = again->find("x");
  EXPECT_EQ(found->over, image.over);
  EXPECT_EQ(found->owner, "one");
  EXPECT_EQ(found->base, "host");
  EXPECT_EQ(found->config.ports, image.config.ports);
  // Equal files of two owners are two images.
  Image other = image;
  other.owner = "two";
  EXPECT_NE(compute_id(other), compute_id(image));
  std::string text = encode(index);
  text.replace(text.find("\"usr\""), 5, "\"../\"");
  EXPECT_FALSE(decode_index(text));
}

}  // namespace
}  // namespace osb::image
