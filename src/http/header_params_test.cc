#include "http/header_params.h"

#include <gmock/gmock.h>

namespace osb::http {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ParseParameters, TakesWhatClientsSend) {
  auto v = parse_parameters("form-data; name=\"metadata\"; filename=\"metadata\"");
  ASSERT_TRUE(v);
  EXPECT_EQ(v->word, "form-data");
  EXPECT_THAT(v->params, ElementsAre(Pair("name", "metadata"), Pair("filename", "metadata")));
  EXPECT_EQ(*v->find("name"), "metadata");
  EXPECT_EQ(v->find("Name"), nullptr);

  struct Case {
    std::string_view text, value;
  };
  const Case cases[] = {
      {"w;n=v", "v"},
      {"w ; n = v ", "v"},
      {"w;\tN=v;", "v"},
      {"w;;; n=v ;; ", "v"},
      {"w; n=\"\"", ""},
      {"w; n=\"a;b=c\" ; x=y", "a;b=c"},
      {"w; n=\"a\\\"b\\\\c\"", "a\"b\\c"},
      {"w; n=\"C:\\temp\\new\"", "C:\\temp\\new"},  // a browser's: only \" and \\ are escapes
      {"w; n=a b.txt ", "a b.txt"},
      {"w; n=a=b", "a=b"},
      {"w; n=/srv/a:b@c", "/srv/a:b@c"},
      {"w; n=na\xc3\xafve", "na\xc3\xafve"},
      {"w; n=\"na\xc3\xafve \xff\"", "na\xc3\xafve \xff"},
      {"w; n=\"a\tb\"", "a\tb"},
  };
  for (const Case& c : cases) {
    auto value = parse_parameters(c.text);
    ASSERT_TRUE(value) << c.text << ": " << value.error().message;
    EXPECT_EQ(value->word, "w");
    ASSERT_NE(value->find("n"), nullptr) << c.text;
    EXPECT_EQ(*value->find("n"), c.value) << c.text;
  }
  EXPECT_THAT(parse_parameters("Text/Plain")->params, IsEmpty());
  EXPECT_EQ(parse_parameters(" Text/Plain ")->word, "text/plain");
  EXPECT_EQ(parse_parameters("")->word, "");
}

TEST(ParseParameters, Refuses) {
  for (std::string_view text : {
           "w; n",        "w; n; m=v",     "w; =v",           "w; n=",          "w; n= ;m=v",
           "w; a b=v",    "w; \"n\"=v",    "w; n@=v",         "w; n=\"v",       "w; n=\"v\\\"",
           "w; n=\"v\"x", "w; n=\"v\" x",  "w; n=\"v\"\"x\"", "w; n=v\"x\"",    "w; n=v; n=v",
           "w; n=v; N=x", "w; n=\"a\nb\"", "w; n=a\rb",       "w; n=\"a\x7f\"", "w\x01; n=v",
       }) {
    auto value = parse_parameters(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Code::invalid_argument);
  }
  EXPECT_FALSE(parse_parameters({"w; n=a\0b", 8}));
}

TEST(DecodeExtended, GivesUtf8) {
  EXPECT_EQ(decode_extended("utf-8''x").value(), "x");
  EXPECT_EQ(decode_extended("UTF-8'en'na%C3%AFve%20file.txt").value(), "na\xc3\xafve file.txt");
  EXPECT_EQ(decode_extended("iso-8859-1''na%EFve%7E").value(), "na\xc3\xafve~");
  EXPECT_EQ(decode_extended("utf-8''it's+1").value(), "it's+1");
  EXPECT_EQ(decode_extended("utf-8''").value(), "");
  for (std::string_view text : {"", "x", "utf-8", "utf-8'x", "''x", "utf-16''x", "utf-8''%", "utf-8''%4",
                                "utf-8''%zz", "utf-8''a%00b"}) {
    EXPECT_FALSE(decode_extended(text)) << text;
  }
}

}  // namespace
}  // namespace osb::http
