#include "http/multipart.h"

#include <gmock/gmock.h>

#include <random>

#include "io/testing.h"

namespace osb::http {
namespace {

using io::testing::run;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A body that comes in pieces of given sizes, the last of them again and again.
class PiecewiseBody : public BodyReader {
 public:
  PiecewiseBody(std::string_view bytes, std::vector<size_t> pieces)
      : left_(bytes), pieces_(std::move(pieces)) {}

  Task<Result<size_t>> read_some(std::span<char> into) override {
    size_t n = std::min({into.size(), left_.size(), pieces_[std::min(at_++, pieces_.size() - 1)]});
    EXPECT_FALSE(into.empty());
    largest_ = std::max(largest_, into.size());
    std::copy_n(left_.data(), n, into.data());
    left_.remove_prefix(n);
    if (n == 0 && fails_) co_return fail(Code::unavailable, "connection lost");
    co_return n;
  }
  std::optional<uint64_t> length() const override { return std::nullopt; }

  bool fails_ = false;  // instead of ending
  size_t largest_ = 0;
  std::string_view left_;

 private:
  std::vector<size_t> pieces_;
  size_t at_ = 0;
};

struct Part {
  std::string name, filename, content;
  bool operator==(const Part&) const = default;
};
void PrintTo(const Part& part, std::ostream* out) {
  *out << "{" << part.name << "," << part.filename << "," << testing::PrintToString(part.content) << "}";
}

struct Outcome {
  std::vector<Part> parts;
  std::string error;  // "" for a complete form
  bool operator==(const Outcome&) const = default;
};
void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << testing::PrintToString(outcome.parts) << " " << outcome.error;
}

Task<Result<void>> read_form(MultipartReader& reader, size_t step, std::vector<Part>& parts) {
  std::string buffer(step, '\0');
  while (true) {
    auto head = CO_TRY(co_await reader.next());
    if (!head) co_return Result<void>();
    std::string content;
    while (size_t n = CO_TRY(co_await reader.read_some(buffer))) content.append(buffer, 0, n);
    if (CO_TRY(co_await reader.read_some(buffer)) != 0)
      co_return fail(Code::internal, "a part went on after its end");
    parts.push_back({head->name, head->filename.value_or("-"), std::move(content)});
  }
}

Outcome read_form(std::string_view body, std::vector<size_t> pieces = {SIZE_MAX}, size_t step = 4096,
                  std::string boundary = "b") {
  PiecewiseBody source(body, std::move(pieces));
  MultipartReader reader(source, std::move(boundary));
  Outcome out;
  if (auto done = run(read_form(reader, step, out.parts)); !done) {
    out.error = done.error().message;
    auto again = run(reader.next());
    EXPECT_FALSE(again) << "an error must stay";
    std::string buffer(1, '\0');
    EXPECT_FALSE(run(reader.read_some(buffer)));
  } else {
    EXPECT_EQ(run(reader.next()).value(), std::nullopt);
  }
  return out;
}

std::string part(std::string_view disposition, std::string_view content) {
  return "--b\r\nContent-Disposition: " + std::string(disposition) + "\r\n\r\n" + std::string(content) +
         "\r\n";
}

TEST(Boundary, ComesFromTheContentType) {
  struct Case {
    std::string_view type, boundary;
  };
  const Case cases[] = {
      {"multipart/form-data; boundary=b", "b"},
      {"multipart/form-data; boundary=opensandbox_0123456789abcdef_1760000000",
       "opensandbox_0123456789abcdef_1760000000"},
      {"Multipart/Form-Data;boundary=\"4d66-9c\"", "4d66-9c"},
      {"multipart/form-data; charset=utf-8; Boundary=\"a b\"; x=y", "a b"},
      {"multipart/form-data; boundary=----WebKitFormBoundaryAbC", "----WebKitFormBoundaryAbC"},
      {"multipart/form-data; boundary='()+_,-./:=?", "'()+_,-./:=?"},
      {"multipart/form-data; boundary=0123456789012345678901234567890123456789012345678901234567890123456789",
       "0123456789012345678901234567890123456789012345678901234567890123456789"},
  };
  for (const Case& c : cases) {
    auto boundary = MultipartReader::boundary_of(c.type);
    ASSERT_TRUE(boundary) << c.type << ": " << boundary.error().message;
    EXPECT_EQ(*boundary, c.boundary);
  }
  for (std::string_view type : {
           "",
           "multipart/form-data",
           "multipart/form-data; boundary",
           "multipart/form-data; boundary=",
           "multipart/form-data; boundary=\"\"",
           "multipart/form-data; boundary=\" \"",
           "multipart/form-data; boundary=\"a \"",
           "multipart/form-data; boundary=\"a",
           "multipart/form-data; boundary=a; boundary=b",
           "multipart/form-data; boundary=a\xc3\xa9",
           "multipart/form-data; boundary=a*b",
           "multipart/form-data; boundary=a@b",
           "multipart/form-data; boundary=\"a\r\nb\"",
           "multipart/form-data; "
           "boundary=01234567890123456789012345678901234567890123456789012345678901234567890",
           "multipart/mixed; boundary=b",
           "multipart/form-data-x; boundary=b",
           "application/json",
           "text/plain; boundary=b",
       }) {
    EXPECT_FALSE(MultipartReader::boundary_of(type)) << type;
  }
}

TEST(Multipart, ReadsWhatClientsSend) {
  std::string python =
      "--b\r\n"
      "Content-Disposition: form-data; name=\"metadata\"; filename=\"metadata\"\r\n"
      "Content-Type: application/json\r\n\r\n"
      "{\"path\":\"/tmp/x\",\"owner\":null}\r\n"
      "--b\r\n"
      "Content-Disposition: form-data; name=\"file\"; filename=\"we\\\"ird\\\\.txt\"\r\n"
      "Content-Type: text/plain; charset=utf-8\r\n\r\n"
      "line\r\nline\r\n\r\n"
      "--b--\r\n";
  EXPECT_EQ(read_form(python), (Outcome{{{"metadata", "metadata", "{\"path\":\"/tmp/x\",\"owner\":null}"},
                                         {"file", "we\"ird\\.txt", "line\r\nline\r\n"}},
                                        ""}));
  std::string dotnet =
      "--b\r\n"
      "Content-Type: application/json; charset=utf-8\r\n"
      "Content-Disposition: form-data; name=metadata; filename=metadata; filename*=utf-8''metadata\r\n\r\n"
      "{}\r\n"
      "--b\r\n"
      "Content-Type: application/octet-stream\r\n"
      "Content-Disposition: form-data; name=file; filename=\"=?utf-8?B?w6k=?=\"; "
      "filename*=utf-8''%C3%A9\r\n\r\n"
      "\r\n--b--\r\n";
  EXPECT_EQ(read_form(dotnet), (Outcome{{{"metadata", "metadata", "{}"}, {"file", "\xc3\xa9", ""}}, ""}));
  std::string kotlin =
      "--b\r\n"
      "content-disposition: form-data; name=\"file\"; filename=\"/tmp/\xc3\xa9\"\r\n"
      "Content-Length: 99999\r\n"
      "Content-Transfer-Encoding: binary\r\n\r\n"
      "abc\r\n--b--";
  EXPECT_EQ(read_form(kotlin), (Outcome{{{"file", "/tmp/\xc3\xa9", "abc"}}, ""}));
}

TEST(Multipart, KeepsTheHeadersOfAPart) {
  PiecewiseBody source(
      "--b\r\nContent-Disposition: form-data; name=f\r\nContent-Type:text/plain\r\nX-A:  1 "
      "\r\n\r\nx\r\n--b--\r\n",
      {SIZE_MAX});
  MultipartReader reader(source, "b");
  auto head = run(reader.next());
  ASSERT_TRUE(head && *head);
  std::vector<std::string> lines;
  for (const HeaderField& field : (*head)->headers) lines.push_back(field.name + "=" + field.value);
  EXPECT_THAT(lines,
              ElementsAre("Content-Disposition=form-data; name=f", "Content-Type=text/plain", "X-A=1"));
  EXPECT_EQ((*head)->filename, std::nullopt);
}

TEST(Multipart, ToleratesWhatTheFormatAllows) {
  std::string a = part("form-data; name=f", "x");
  const Outcome one{{{"f", "-", "x"}}, ""};
  EXPECT_EQ(read_form("--b--\r\n"), Outcome());
  EXPECT_EQ(read_form("--b--"), Outcome());
  EXPECT_EQ(read_form("\r\n--b--"), Outcome());
  EXPECT_EQ(read_form(a + "--b--\r\n"), one);
  EXPECT_EQ(read_form(a + "--b--"), one);
  EXPECT_EQ(read_form(a + "--b-- \t"), one);
  EXPECT_EQ(read_form(a + "--b-- \t\r\n"), one);
  EXPECT_EQ(read_form(a + "--b--\r\nepilogue\r\n--b\r\nmore"), one);
  EXPECT_EQ(read_form("preamble --b \r\n -b\r\n-\r\n" + a + "--b--\r\n"), one);
  EXPECT_EQ(read_form("\r\n" + a + "--b--\r\n"), one);
  EXPECT_EQ(read_form("--b \t \r\nContent-Disposition: form-data; name=f\r\n\r\nx\r\n--b--\r\n"), one);
  // No content at all, in both ways to write it.
  const Outcome empty{{{"f", "-", ""}, {"f", "-", "x"}}, ""};
  EXPECT_EQ(read_form("--b\r\nContent-Disposition: form-data; name=f\r\n\r\n\r\n" + a + "--b--\r\n"), empty);
  EXPECT_EQ(read_form("--b\r\nContent-Disposition: form-data; name=f\r\n\r\n" + a + "--b--\r\n"), empty);
}

TEST(Multipart, ContentMayLookAlmostLikeABoundary) {
  for (std::string_view content :
       {"\r", "\n", "\r\n", "\r\n\r\n", "\r\n-", "\r\n--", "\r\n--a", "--b", "\n--b", "\r--b\r\n", "x--b\r\n",
        "\r\n --b\r\n", "\r\n-b\r\n", "\r\r\n-\r\n-", "-", "--", "\r\n--\r\n--\r\n--",
        "Content-Disposition: form-data\r\n\r\n"}) {
    std::string quoted = "--x" + std::string(content);
    for (std::string_view whole : {content, std::string_view(quoted)}) {
      if (whole.starts_with("--b")) continue;
      EXPECT_EQ(read_form(part("form-data; name=f", whole) + "--b--\r\n"),
                (Outcome{{{"f", "-", std::string(whole)}}, ""}));
    }
  }
}

TEST(Multipart, Refuses) {
  std::string good = "Content-Disposition: form-data; name=f\r\n";
  struct Case {
    std::string body, why;
  };
  const Case cases[] = {
      {"", "ends before"},
      {"--b", "ends before"},
      {"--b\r", "ends before"},
      {"--b\r\n", "ends before"},
      {"--b-", "ends before"},
      {"--b--\r", "ends before"},
      {"--c--\r\n", "ends before"},
      {"--b\n" + good, "follows a boundary"},
      {"--bb\r\n" + good, "follows a boundary"},
      {"--b-\r\n" + good, "follows a boundary"},
      {"--b--x\r\n", "follows a boundary"},
      {"--b--\n", "follows a boundary"},
      {"--b --\r\n", "follows a boundary"},
      {"--b- -\r\n", "follows a boundary"},
      {"--b" + std::string(200, ' ') + "\r\n" + good + "\r\nx\r\n--b--", "follows a boundary"},
      {"--b\r\n" + good, "ends before"},
      {"--b\r\n" + good + "\r\n", "ends before"},
      {"--b\r\n" + good + "\r\nx", "ends before"},
      {"--b\r\n" + good + "\r\nx\r\n", "ends before"},
      {"--b\r\n" + good + "\r\nx\r\n--", "ends before"},
      {"--b\r\n" + good + "\r\nx\r\n--b", "ends before"},
      {"--b\r\n" + good + "\r\nx\r\n--bc\r\n--b--", "follows a boundary"},
      {"--b\r\n\r\nx\r\n--b--", "without Content-Disposition"},
      {"--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--", "without Content-Disposition"},
      {"--b\r\nContent-Disposition: attachment; name=f\r\n\r\nx\r\n--b--", "not form-data"},
      {"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", "no name"},
      {"--b\r\nContent-Disposition: form-data; filename=f\r\n\r\nx\r\n--b--", "no name"},
      {"--b\r\nContent-Disposition: form-data; name=\"f\r\n\r\nx\r\n--b--", "not closed"},
      {"--b\r\nContent-Disposition: form-data; name=f; name=g\r\n\r\nx\r\n--b--", "twice"},
      {"--b\r\nContent-Disposition: form-data; name=f; filename*=x\r\n\r\nx\r\n--b--", "filename*"},
      {"--b\r\n" + good + good + "\r\nx\r\n--b--", "twice"},
      {"--b\r\nno colon\r\n" + good + "\r\nx\r\n--b--", "no colon"},
      {"--b\r\n: x\r\n" + good + "\r\nx\r\n--b--", "header name"},
      {"--b\r\nX : x\r\n" + good + "\r\nx\r\n--b--", "header name"},
      {"--b\r\n" + good + " folded: x\r\n\r\nx\r\n--b--", "folded"},
      {"--b\r\nX: a\rb\r\n" + good + "\r\nx\r\n--b--", "control character"},
      {"--b\r\nX: a\nb\r\n" + good + "\r\nx\r\n--b--", "control character"},
      {"--b\r\nX: a" + std::string(1, '\0') + "\r\n" + good + "\r\nx\r\n--b--", "control character"},
      {"--b\r\n" + good + "Content-Transfer-Encoding: base64\r\n\r\neA==\r\n--b--", "base64"},
  };
  for (const Case& c : cases) {
    for (size_t piece : {SIZE_MAX, size_t{1}}) {
      Outcome out = read_form(c.body, {piece});
      EXPECT_THAT(out.error, HasSubstr(c.why)) << testing::PrintToString(c.body);
      EXPECT_THAT(out.parts, IsEmpty()) << testing::PrintToString(c.body);
    }
  }
}

TEST(Multipart, IsBounded) {
  auto padded = [](size_t bytes) {
    std::string head = "\r\nContent-Disposition: form-data; name=f\r\nX: ";
    return "--b" + head + std::string(bytes - head.size(), 'x') + "\r\n\r\ny\r\n--b--\r\n";
  };
  for (size_t piece : {SIZE_MAX, size_t{1}, size_t{1000}}) {
    EXPECT_EQ(read_form(padded(16 * 1024), {piece}).error, "");
    EXPECT_THAT(read_form(padded(16 * 1024 + 1), {piece}).error, HasSubstr("too long"));
    EXPECT_EQ(read_form(std::string(16'000, 'p') + "\r\n--b--", {piece}).error, "");
    EXPECT_THAT(read_form(std::string(17'000, 'p') + "\r\n--b--", {piece}).error,
                HasSubstr("no boundary near"));
  }
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += part("form-data; name=f", "x");
  Outcome most = read_form(thousand + "--b--\r\n");
  EXPECT_EQ(most.error, "");
  EXPECT_EQ(most.parts.size(), 1000u);
  Outcome more = read_form(thousand + part("form-data; name=f", "x") + "--b--\r\n");
  EXPECT_THAT(more.error, HasSubstr("more than 1000"));
  EXPECT_EQ(more.parts.size(), 1000u);
}

TEST(Multipart, SkipsWhatIsNotRead) {
  std::string body = part("form-data; name=a", std::string(300'000, 'x')) + part("form-data; name=b", "yyy") +
                     part("form-data; name=c", "") + "--b--\r\n";
  PiecewiseBody source(body, {SIZE_MAX});
  MultipartReader reader(source, "b");
  std::string buffer(2, '\0');
  EXPECT_EQ(run(reader.read_some(buffer)).value(), 0u) << "no part yet";
  EXPECT_EQ(run(reader.next()).value()->name, "a");
  EXPECT_EQ(run(reader.read_some(buffer)).value(), 2u);
  EXPECT_EQ(run(reader.next()).value()->name, "b");
  EXPECT_EQ(run(reader.read_some(buffer)).value(), 2u);
  EXPECT_EQ(run(reader.read_some(buffer)).value(), 1u);
  EXPECT_EQ(run(reader.next()).value()->name, "c");
  EXPECT_EQ(run(reader.next()).value(), std::nullopt);
  EXPECT_EQ(run(reader.next()).value(), std::nullopt);
  EXPECT_EQ(run(reader.read_some(buffer)).value(), 0u);
  EXPECT_LE(source.largest_, 64u * 1024) << "memory does not grow with the part";
}

TEST(Multipart, PassesOnTheErrorOfTheBody) {
  for (size_t cut : {size_t{0}, size_t{2}, size_t{20}, size_t{60}}) {
    std::string body = part("form-data; name=f", std::string(100, 'x'));
    PiecewiseBody source(std::string_view(body).substr(0, cut), {7});
    source.fails_ = true;
    MultipartReader reader(source, "b");
    std::vector<Part> parts;
    auto done = run(read_form(reader, 10, parts));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::unavailable);
    EXPECT_EQ(run(reader.next()).error().code, Code::unavailable);
  }
  PiecewiseBody source("--b--", {7});
  source.fails_ = true;  // lost before the end of the line: not the end of a body
  MultipartReader reader(source, "b");
  EXPECT_EQ(run(reader.next()).error().code, Code::unavailable);
}

TEST(Multipart, EveryChunkingGivesTheSame) {
  const std::string body = "pre\r\n-\r\n" + part("form-data; name=a", "\r\n--\r\n--a\r\n-") +
                           part("form-data; name=\"b\"; filename=\"\"", "") +
                           "--b \r\nContent-Disposition: form-data; name=c\r\n\r\n" +
                           part("form-data; name=d", "\r\n\r") + "--b--\t\r\nend";
  const Outcome expected{
      {{"a", "-", "\r\n--\r\n--a\r\n-"}, {"b", "", ""}, {"c", "-", ""}, {"d", "-", "\r\n\r"}}, ""};
  for (size_t size = 1; size <= body.size(); ++size) {
    EXPECT_EQ(read_form(body, {size}, size), expected) << size;
    EXPECT_EQ(read_form(body, {size, SIZE_MAX}), expected) << size;
    EXPECT_EQ(read_form(body, {size, 1}, 1), expected) << size;
  }
}

TEST(Multipart, RandomBodiesDoNotDependOnTheChunking) {
  static constexpr std::string_view kPieces[] = {
      "--b",         "\r\n",      "--",
      "\r\n--b\r\n", "\r\n--b--", "Content-Disposition: form-data; name=f\r\n",
      "X: y",        "\r",        "\r\n\r\n",
      "\n",          " ",         "\r\n--b\r\nContent-Disposition: form-data; name=f\r\n\r\n",
      "data",        "b",         "\r\n--bc",
      "-",
  };
  std::mt19937 random(42);
  int complete = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string body = random() % 2 ? part("form-data; name=f", "x") : "";
    for (unsigned n = random() % 14; n > 0; --n) body.append(kPieces[random() % std::size(kPieces)]);
    if (random() % 2) body.append("\r\n--b--\r\n");
    Outcome expected = read_form(body);
    complete += expected.error.empty();
    std::vector<size_t> pieces;
    for (int i = 0; i < 40; ++i) pieces.push_back(1 + random() % 9);
    ASSERT_EQ(read_form(body, pieces, 1 + random() % 5), expected) << testing::PrintToString(body);
    ASSERT_EQ(read_form(body, {1}), expected) << testing::PrintToString(body);
  }
  EXPECT_GT(complete, 100) << "the generator makes too few valid bodies";
}

TEST(Multipart, LargePartsCrossTheBufferAnywhere) {
  std::mt19937 random(7);
  for (size_t size : {65'400u, 65'480u, 65'500u, 65'530u, 131'000u, 200'003u}) {
    for (size_t extra = 0; extra < 60; ++extra) {
      std::string content(size + extra, '\0');
      for (char& c : content) c = "\r\n-bx"[random() % 5];
      content[0] = 'x';  // not "--b", which would be a boundary
      for (size_t at; (at = content.find("\r\n--b")) != content.npos;) content[at] = 'x';
      ASSERT_EQ(read_form(part("form-data; name=x", content) + "--b--\r\n", {SIZE_MAX}, 65'536),
                (Outcome{{{"x", "-", content}}, ""}))
          << size + extra;
    }
  }
}

}  // namespace
}  // namespace osb::http
