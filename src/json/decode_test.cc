#include "json/decode.h"

#include <gmock/gmock.h>

#include <limits>

namespace osb::json {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

struct Document {
  explicit Document(std::string_view text)
      : value(parse(text).value()), body(Field::root(value, issues, "body")) {}
  // What was complained about: "type path".
  std::vector<std::string> complaints() const {
    std::vector<std::string> out;
    for (const Issue& issue : issues.list()) out.push_back(issue.type + " " + to_string(issue.path));
    return out;
  }
  Issues issues;
  bj::value value;
  Field body;
};

TEST(Parse, AcceptsAndPrintsCompactly) {
  struct Case {
    std::string_view text, printed;
  };
  const Case cases[] = {
      {"null", "null"},
      {" true ", "true"},
      {"0", "0"},
      {"-7", "-7"},
      {"9223372036854775807", "9223372036854775807"},
      {"18446744073709551615", "18446744073709551615"},
      {"\"\"", "\"\""},
      {"[ 1 , [ ] , { } ]", "[1,[],{}]"},
      {"{\"b\": 1, \"a\": 2}", "{\"b\":1,\"a\":2}"},
      {"{\"a\": 1, \"a\": 2}", "{\"a\":2}"},  // the last one counts
      {"\"\\u00e9\\ud83d\\ude00\"", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
      {"\"\xc3\xa9 \xe2\x80\xa8 <&> \x7f\"", "\"\xc3\xa9 \xe2\x80\xa8 <&> \x7f\""},
      {"\"\\u0000\\n\\/\"", "\"\\u0000\\n/\""},
  };
  for (const Case& c : cases) {
    auto value = parse(c.text);
    ASSERT_TRUE(value) << c.text << ": " << value.error().message;
    EXPECT_EQ(print(*value), c.printed);
  }
}

TEST(Parse, RejectsWithThePosition) {
  struct Case {
    std::string_view text;
    size_t position;
  };
  const Case cases[] = {
      {"", 0},          {"  ", 2},
      {"nul", 3},       {"nulL", 0},
      {"True", 0},      {"{", 1},
      {"[1,]", 3},      {"{\"a\":1,}", 7},
      {"{a:1}", 1},     {"{'a':1}", 1},
      {"{\"a\" 1}", 5}, {"[1 2]", 3},
      {"1 2", 2},       {"{} x", 3},
      {"[1]]", 3},      {"01", 1},
      {"+1", 0},        {".5", 0},
      {"-", 1},         {"1.", 2},
      {"1e", 2},        {"0x10", 1},
      {"NaN", 0},       {"Infinity", 0},
      {"-Infinity", 1}, {"\"a", 2},
      {"\"\\", 2},      {"\"\\x41\"", 2},
      {"\"\\u12\"", 5}, {"\"a\nb\"", 2},
      {"\"a\tb\"", 2},  {"// c\n1", 0},
      {"[1/**/]", 2},   {"\xef\xbb\xbf{}", 0},
  };
  for (const Case& c : cases) {
    auto value = parse(c.text);
    ASSERT_FALSE(value) << c.text;
    EXPECT_EQ(value.error().code, Code::invalid_argument) << c.text;
    EXPECT_THAT(value.error().message, testing::EndsWith(" at byte " + std::to_string(c.position))) << c.text;
  }
}

TEST(Parse, RejectsBrokenUnicode) {
  for (std::string_view text :
       {"\"\x80\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xe2\x82\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
        "\"\xff\"", "{\"\xff\":1}", "\"\\ud800\"", "\"\\ud800x\"", "\"\\udc00\"", "\"\\ud800\\u0041\""}) {
    EXPECT_FALSE(parse(text)) << testing::PrintToString(text);
  }
}

TEST(Parse, BoundsTheDepth) {
  EXPECT_TRUE(parse(nested(kMaxDepth)));
  auto deep = parse(nested(kMaxDepth + 1));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, Code::invalid_argument);
  EXPECT_FALSE(parse(std::string(1 << 20, '[')));
  EXPECT_FALSE(parse_first(nested(kMaxDepth + 1)));
}

TEST(Print, NumbersReadBackAsTheSame) {
  struct Case {
    double number;
    std::string_view printed;
  };
  const Case cases[] = {
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {12.5, "12.5"},
      {-300, "-300.0"},
      {0.1, "0.1"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1e6, "1000000.0"},
      {1e21, "1e+21"},
      {5e-324, "4.94065645841247e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {1760000000.123456, "1760000000.123456"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(print(c.number), c.printed);
    auto value = parse(c.printed);
    ASSERT_TRUE(value && value->is_double()) << c.printed;
    EXPECT_DOUBLE_EQ(value->get_double(), c.number);
  }
}

TEST(Print, IsJsonWhateverItIsGiven) {
  EXPECT_EQ(print(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(print(std::numeric_limits<double>::quiet_NaN()), "null");
  EXPECT_EQ(print(bj::value{{"bad\xff", "\xc3("}}), "{\"bad\\ufffd\":\"\\ufffd(\"}");
  EXPECT_EQ(print(bj::value{{"a", {1, nullptr, true}}, {"b", bj::object()}}),
            "{\"a\":[1,null,true],\"b\":{}}");
}

TEST(ParseFirst, IgnoresWhatFollows) {
  EXPECT_EQ(print(parse_first("{\"a\":1}{\"b\":2}").value()), "{\"a\":1}");
  EXPECT_EQ(print(parse_first(" [1] \n garbage \xff").value()), "[1]");
  EXPECT_EQ(print(parse_first("7 8").value()), "7");
  for (std::string_view text : {"", " ", "{\"a\":1", "x{}", "[1,]", "\"\xff\""})
    EXPECT_FALSE(parse_first(text)) << text;
}

TEST(Path, IsReadableAndUnambiguous) {
  EXPECT_EQ(to_string({}), "");
  EXPECT_EQ(to_string({"volumes", 2, "mountPath"}), "volumes[2].mountPath");
  EXPECT_EQ(to_string({"body", "a.b", 0, ""}), "body[\"a.b\"][0][\"\"]");
  EXPECT_EQ(to_string({"body", "x\n\"y"}), "body[\"x\\n\\\"y\"]");
}

TEST(Field, FindsMembersByPath) {
  Document d(R"({"image": {"uri": "registry.example/a"}, "volumes": [{"name": "x"}, {"name": 5}]})");
  EXPECT_EQ(d.body["image"]["uri"].required_string(), "registry.example/a");
  auto volumes = d.body["volumes"].array();
  ASSERT_TRUE(volumes);
  EXPECT_EQ((*volumes)[0]["name"].string(), "x");
  EXPECT_EQ((*volumes)[1]["name"].string(), std::nullopt);
  EXPECT_EQ((*volumes)[1]["mountPath"].required_string(), "");
  EXPECT_THAT(d.complaints(),
              ElementsAre("string_type body.volumes[1].name", "missing body.volumes[1].mountPath"));
}

TEST(Field, NullIsAbsentEverywhere) {
  Document d(R"({"n": null, "l": [null], "o": {"n": null}})");
  for (const Field& field : {d.body["n"], d.body["none"], d.body["n"]["deeper"], d.body["none"]["deeper"],
                             d.body["o"]["n"], (*d.body["l"].array())[0], d.body["o"].object()->at("n")}) {
    EXPECT_FALSE(field.present());
    EXPECT_EQ(field.raw(), nullptr);
    EXPECT_FALSE(field.string() || field.integer() || field.boolean() || field.array() || field.object() ||
                 field.string_map() || field.string_list());
  }
  EXPECT_THAT(d.complaints(), IsEmpty());
  EXPECT_EQ(d.body["n"].required_string(), "");
  EXPECT_EQ(d.body["none"]["deeper"].required_integer(), 0);
  EXPECT_THAT(d.complaints(), ElementsAre("missing body.n", "missing body.none.deeper"));

  Document null("null");
  EXPECT_FALSE(null.body.present());
  EXPECT_FALSE(null.body["a"].present());
  EXPECT_TRUE(null.issues.empty());
}

TEST(Field, AValueThatIsNoObjectIsOneIssue) {
  for (std::string_view text : {"5", "\"a\"", "[1]", "true"}) {
    Document d(text);
    EXPECT_EQ(d.body["a"].required_string(), "");
    EXPECT_EQ(d.body["b"]["c"].required_integer(), 0);
    d.body["d"].complain("value_error", "silent: the parent's type is the mistake");
    EXPECT_FALSE(d.body.any_of({"e", "f"}).present());
    EXPECT_THAT(d.complaints(), ElementsAre("model_attributes_type body"));
  }
}

TEST(Field, TakesTheFirstOfSeveralNames) {
  Document d(
      R"({"snake_case": 1, "both_of": 2, "bothOf": 3, "nullOf": null, "null_of": 4, "camelCase": "x"})");
  EXPECT_EQ(d.body.any_of({"snakeCase", "snake_case"}).integer(), 1);
  EXPECT_EQ(d.body.any_of({"bothOf", "both_of"}).integer(), 3);
  EXPECT_EQ(d.body.any_of({"nullOf", "null_of"}).integer(), 4);
  EXPECT_FALSE(d.body.any_of({"neither", "nor"}).present());
  EXPECT_FALSE(d.body.any_of({"camelCase", "camel_case"}).integer());
  EXPECT_FALSE(d.body.any_of({"camel_case", "camelCase"}).integer());
  EXPECT_THAT(d.complaints(), ElementsAre("int_parsing body.camelCase", "int_parsing body.camel_case"));
}

TEST(Field, StringsAreOnlyStrings) {
  EXPECT_EQ(Document(R"({"v": ""})").body["v"].string(), "");
  EXPECT_EQ(Document(R"({"v": "a\u0000b"})").body["v"].string(), std::string("a\0b", 3));
  for (std::string_view text : {"1", "1.5", "true", "[]", "[\"a\"]", "{}"}) {
    Document d("{\"v\": " + std::string(text) + "}");
    EXPECT_EQ(d.body["v"].string(), std::nullopt);
    EXPECT_THAT(d.complaints(), ElementsAre("string_type body.v")) << text;
  }
}

TEST(Field, IntegersComeInManyForms) {
  struct Good {
    std::string_view text;
    int64_t value;
  };
  for (const Good& c : std::initializer_list<Good>{{"300", 300},
                                                   {"-1", -1},
                                                   {"300.0", 300},
                                                   {"3e2", 300},
                                                   {"-0.0", 0},
                                                   {"\"300\"", 300},
                                                   {"\"+300\"", 300},
                                                   {"\"-300\"", -300},
                                                   {"\" 300\\n\"", 300},
                                                   {"\"0300\"", 300},
                                                   {"\"300.00\"", 300},
                                                   {"9223372036854775807", INT64_MAX},
                                                   {"-9223372036854775808", INT64_MIN},
                                                   {"\"-9223372036854775808\"", INT64_MIN},
                                                   {"-9223372036854775808.0", INT64_MIN}}) {
    Document d("{\"v\": " + std::string(c.text) + "}");
    EXPECT_EQ(d.body["v"].integer(), c.value) << c.text;
    EXPECT_EQ(d.body["v"].required_integer(), c.value) << c.text;
    EXPECT_TRUE(d.issues.empty()) << c.text;
  }
  struct Bad {
    std::string_view text, type;
  };
  for (const Bad& c : std::initializer_list<Bad>{{"\"\"", "int_parsing"},
                                                 {"\" \"", "int_parsing"},
                                                 {"\"abc\"", "int_parsing"},
                                                 {"\"12a\"", "int_parsing"},
                                                 {"\"1 2\"", "int_parsing"},
                                                 {"\"0x10\"", "int_parsing"},
                                                 {"\"1e3\"", "int_parsing"},
                                                 {"\"1.5\"", "int_parsing"},
                                                 {"\"1.\"", "int_parsing"},
                                                 {"\".0\"", "int_parsing"},
                                                 {"\"1.0.0\"", "int_parsing"},
                                                 {"\"-\"", "int_parsing"},
                                                 {"\"+-1\"", "int_parsing"},
                                                 {"\"--1\"", "int_parsing"},
                                                 {"\"- 1\"", "int_parsing"},
                                                 {"\"1\\u0000\"", "int_parsing"},
                                                 {"\"9223372036854775808\"", "int_parsing_size"},
                                                 {"\"-9223372036854775809\"", "int_parsing_size"},
                                                 {"9223372036854775808", "int_parsing_size"},
                                                 {"18446744073709551616", "int_parsing_size"},
                                                 {"9223372036854775808.0", "int_parsing_size"},
                                                 {"-1e300", "int_parsing_size"},
                                                 {"1e999", "int_parsing_size"},
                                                 {"1.5", "int_from_float"},
                                                 {"1e-1", "int_from_float"},
                                                 {"true", "int_type"},
                                                 {"[]", "int_type"},
                                                 {"{}", "int_type"}}) {
    Document d("{\"v\": " + std::string(c.text) + "}");
    EXPECT_EQ(d.body["v"].integer(), std::nullopt) << c.text;
    EXPECT_EQ(d.body["v"].required_integer(), 0) << c.text;
    EXPECT_THAT(d.complaints(), ElementsAre(std::string(c.type) + " body.v")) << c.text;
  }
}

TEST(Field, BooleansComeInManyForms) {
  for (std::string_view text :
       {"true", "1", "1.0", "\"true\"", "\"TRUE\"", "\"1\"", "\"yes\"", "\"On\"", "\"t\"", "\"Y\""}) {
    EXPECT_EQ(Document("{\"v\": " + std::string(text) + "}").body["v"].boolean(), true) << text;
  }
  for (std::string_view text :
       {"false", "0", "-0.0", "\"False\"", "\"0\"", "\"no\"", "\"OFF\"", "\"f\"", "\"n\""}) {
    EXPECT_EQ(Document("{\"v\": " + std::string(text) + "}").body["v"].boolean(), false) << text;
  }
  for (std::string_view text :
       {"2", "-1", "0.5", "1e99", "\"\"", "\" true\"", "\"tru\"", "\"truee\"", "\"10\"", "\"null\""}) {
    Document d("{\"v\": " + std::string(text) + "}");
    EXPECT_EQ(d.body["v"].boolean(), std::nullopt) << text;
    EXPECT_THAT(d.complaints(), ElementsAre("bool_parsing body.v")) << text;
  }
  for (std::string_view text : {"[]", "{}", "[true]"}) {
    Document d("{\"v\": " + std::string(text) + "}");
    EXPECT_EQ(d.body["v"].boolean(), std::nullopt) << text;
    EXPECT_THAT(d.complaints(), ElementsAre("bool_type body.v")) << text;
  }
}

TEST(Field, ContainersAreChecked) {
  Document d(R"({"o": {"k": "v", "": "w"}, "l": ["a", "b"], "empty": {}, "none": [], "text": "x"})");
  EXPECT_THAT(*d.body["o"].string_map(), ElementsAre(Pair("", "w"), Pair("k", "v")));
  EXPECT_THAT(*d.body["l"].string_list(), ElementsAre("a", "b"));
  EXPECT_THAT(*d.body["empty"].string_map(), IsEmpty());
  EXPECT_THAT(*d.body["none"].string_list(), IsEmpty());
  EXPECT_TRUE(d.issues.empty());
  EXPECT_FALSE(d.body["l"].object() || d.body["text"].string_map() || d.body["o"].array() ||
               d.body["text"].string_list());
  EXPECT_THAT(d.complaints(), ElementsAre("dict_type body.l", "dict_type body.text", "list_type body.o",
                                          "list_type body.text"));
}

TEST(Field, EveryWrongElementIsNamed) {
  Document d(R"({"m": {"a": 1, "b": "ok", "c": null, "d": {}}, "l": ["ok", 1, null]})");
  EXPECT_FALSE(d.body["m"].string_map());
  EXPECT_FALSE(d.body["l"].string_list());
  EXPECT_THAT(d.complaints(),
              ElementsAre("string_type body.m.a", "string_type body.m.c", "string_type body.m.d",
                          "string_type body.l[1]", "string_type body.l[2]"));
}

TEST(Issues, AreBoundedAndNotRepeated) {
  Issues issues;
  EXPECT_TRUE(issues.empty());
  for (int i = 0; i < 3; ++i) issues.add({"missing", {"body", "a"}, "is required"});
  EXPECT_EQ(issues.list().size(), 1u);
  issues.add({"missing", {"body", "b"}, "is required"});
  issues.add({"value_error", {"body", "a"}, "is required"});
  issues.add({"value_error", {"body", "a"}, "is something else"});
  EXPECT_EQ(issues.list().size(), 4u);
  for (int64_t i = 0; i < 1000; ++i) issues.add({"missing", {"body", i}, "is required"});
  EXPECT_EQ(issues.list().size(), Issues::kMax);
  EXPECT_FALSE(issues.empty());
}

TEST(Field, ExactReadingTakesNothingForSomethingElse) {
  Issues issues;
  bj::value value = parse(R"({"Name":"x","COUNT":3,"on":true,"text":"5","float":5.0,"yes":"yes","one":1,
                              "none":null,"deep":{"Inner":7},"list":[{"ITEM":1}]})")
                        .value();
  Field body = Field::root(value, issues, "body", Reading::exact);
  EXPECT_EQ(body["name"].string(), "x");
  EXPECT_EQ(body["count"].integer(), 3);
  EXPECT_EQ(body["ON"].boolean(), true);
  EXPECT_EQ(body["deep"]["inner"].integer(), 7);
  EXPECT_EQ((*body["list"].array())[0]["item"].integer(), 1);
  EXPECT_FALSE(body["none"].integer());
  EXPECT_TRUE(issues.empty());
  EXPECT_FALSE(body["text"].integer());
  EXPECT_FALSE(body["float"].integer());
  EXPECT_FALSE(body["yes"].boolean());
  EXPECT_FALSE(body["one"].boolean());
  EXPECT_EQ(issues.list().size(), 4u);
}

TEST(Field, AnExactNameComesBeforeOneInAnotherCase) {
  Issues issues;
  bj::value value = parse(R"({"A":1,"a":2,"B":3,"b ":4})").value();
  Field body = Field::root(value, issues, "body", Reading::exact);
  EXPECT_EQ(body["a"].integer(), 2);
  EXPECT_EQ(body["A"].integer(), 1);
  EXPECT_EQ(body["b"].integer(), 3);
  EXPECT_FALSE(Field::root(value, issues, "body")["b"].present());
}

}  // namespace
}  // namespace osb::json
