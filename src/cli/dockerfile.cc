#include "cli/dockerfile.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/dockerfile_words.h"

namespace osb::cli {
namespace {

using Kind = Instruction::Kind;

constexpr size_t kMostText = 64 << 10;
constexpr size_t kMostStages = 64;
constexpr size_t kMostInstructions = 1000;
constexpr size_t kMostWords = 1000;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  return out;
}

std::unexpected<Error> wrong(int line, const std::string& what) {
  return fail(Code::invalid_argument, "line " + std::to_string(line) + ": " + what);
}

// For messages: a word of the file, cut and without anything that a terminal would act on.
std::string shown(std::string_view word) {
  std::string out(word.substr(0, 40));
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

struct Logical {
  int line = 0;
  std::string text;
};

const std::map<std::string, Kind> kKinds = {{"RUN", Kind::run},
                                            {"COPY", Kind::copy},
                                            {"ADD", Kind::add},
                                            {"ENV", Kind::env},
                                            {"WORKDIR", Kind::workdir},
                                            {"USER", Kind::user},
                                            {"ENTRYPOINT", Kind::entrypoint},
                                            {"CMD", Kind::cmd},
                                            {"ARG", Kind::arg},
                                            {"LABEL", Kind::label},
                                            {"EXPOSE", Kind::expose},
                                            {"SHELL", Kind::shell}};

const std::set<std::string> kRefused = {"HEALTHCHECK", "MAINTAINER", "ONBUILD", "STOPSIGNAL", "VOLUME"};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Dockerfile> parse() {
    if (text_.size() > kMaxDockerfile) return fail(Code::too_large, "the file is larger than 1 MiB");
    if (text_.find('\0') != text_.npos) return fail(Code::invalid_argument, "the file has a NUL in it");
    TRY(read_directives());
    size_t count = 0;
    while (auto logical = TRY(next())) {
      if (++count > kMostInstructions) return wrong(logical->line, "there are more than 1,000 instructions");
      TRY(read(*logical));
    }
    if (file_.stages.empty()) return fail(Code::invalid_argument, "the file has no FROM");
    return std::move(file_);
  }

 private:
  std::optional<std::string_view> next_line() {
    if (at_ >= text_.size()) return std::nullopt;
    size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  // # name=value in the first lines, before anything else.
  Result<void> read_directives() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    while (at_ < text_.size()) {
      size_t before = at_;
      int line_before = line_;
      std::string_view line = trim(*next_line());
      size_t equals = line.find('=');
      std::string name =
          line.starts_with('#') && equals != line.npos ? lower(trim(line.substr(1, equals - 1))) : "";
      std::string_view value = equals == line.npos ? "" : trim(line.substr(equals + 1));
      if (name == "escape") {
        if (value != "\\" && value != "`") return wrong(line_, "escape must be \\ or `");
        file_.escape = value[0];
      } else if (name == "syntax") {
        // The standard one is what is read here; others are programs of somebody else's.
        std::string_view standard = "docker/dockerfile:1";
        if (!value.starts_with(standard) && value != "docker/dockerfile")
          return wrong(line_, "this syntax is not supported; only docker/dockerfile:1 is");
      } else if (name != "check") {
        at_ = before;
        line_ = line_before;
        return {};
      }
    }
    return {};
  }

  Result<std::optional<Logical>> next() {
    Logical out;
    bool goes_on = false;
    while (auto line = next_line()) {
      std::string_view body = trim(*line);
      if (body.empty() || body.starts_with('#')) continue;
      if (!goes_on) out.line = line_;
      body = goes_on ? *line : body;
      while (!body.empty() && (body.back() == ' ' || body.back() == '\t')) body.remove_suffix(1);
      goes_on = body.ends_with(file_.escape);
      if (goes_on) body.remove_suffix(1);
      out.text += body;
      if (out.text.size() > kMostText) return wrong(out.line, "the instruction is longer than 64 KiB");
      if (!goes_on) return out;
    }
    if (out.line == 0) return std::nullopt;
    return out;  // ends with the file
  }

  Result<void> read(const Logical& logical) {
    std::string_view text = trim(logical.text);
    size_t blank = text.find_first_of(" \t");
    std::string name = upper(text.substr(0, blank));
    std::string_view rest = blank == text.npos ? "" : trim(text.substr(blank));
    if (kRefused.contains(name)) return wrong(logical.line, name + " is not supported");
    auto kind = kKinds.find(name);
    if (kind == kKinds.end() && name != "FROM")
      return wrong(logical.line, shown(name) + " is no instruction that is known");
    if (rest.empty()) return wrong(logical.line, name + " needs something after it");
    if (name == "FROM") return read_from(logical.line, rest);
    Instruction one{.kind = kind->second, .line = logical.line, .text = shown_text(text)};
    TRY(read_flags(name, rest, one));
    TRY(read_words(name, rest, one));
    if (!file_.stages.empty()) {
      file_.stages.back().instructions.push_back(std::move(one));
    } else if (one.kind == Kind::arg) {
      file_.arguments.push_back(std::move(one));
    } else {
      return wrong(logical.line, name + " before the first FROM; only ARG may be there");
    }
    return {};
  }

  static std::string shown_text(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return out;
  }

  Result<std::vector<std::string>> words_of(int line, std::string_view text) const {
    auto words = split_words(text, file_.escape);
    if (!words) return wrong(line, "a quote does not end");
    if (words->size() > kMostWords) return wrong(line, "more than 1,000 words");
    return std::move(*words);
  }

  Result<void> read_from(int line, std::string_view rest) {
    auto words = TRY(words_of(line, rest));
    if (words[0].starts_with("--"))
      return wrong(line, "FROM " + shown(words[0].substr(0, words[0].find('='))) + " is not supported");
    bool named = words.size() == 3 && lower(words[1]) == "as";
    if (words.size() != 1 && !named) return wrong(line, "FROM is written FROM IMAGE [AS NAME]");
    if (lower(words[0]) == "scratch")
      return wrong(line, "FROM scratch is not supported: a build needs a root to run in");
    if (file_.stages.size() >= kMostStages) return wrong(line, "there are more than 64 stages");
    Stage stage{.line = line, .base = words[0], .name = named ? lower(words[2]) : ""};
    bool plain = stage.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == stage.name.npos;
    if (named && (!plain || stage.name[0] < 'a' || stage.name[0] > 'z'))
      return wrong(line, "a stage's name has letters, digits and _ . - and begins with a letter");
    for (const Stage& other : file_.stages) {
      if (named && other.name == stage.name) return wrong(line, "another stage has this name");
    }
    file_.stages.push_back(std::move(stage));
    return {};
  }

  // --name=value in front.
  Result<void> read_flags(const std::string& name, std::string_view& rest, Instruction& one) const {
    while (rest.starts_with("--")) {
      size_t end = std::min(rest.find_first_of(" \t"), rest.size());
      std::string_view flag = rest.substr(2, end - 2);
      size_t equals = flag.find('=');
      std::string key(flag.substr(0, equals));
      bool of_copy = one.kind == Kind::copy && key == "from";
      bool of_both = (one.kind == Kind::copy || one.kind == Kind::add) && (key == "chown" || key == "chmod");
      if (!of_copy && !of_both) return wrong(one.line, name + " --" + shown(key) + " is not supported");
      if (equals == flag.npos || equals + 1 == flag.size())
        return wrong(one.line, name + " --" + key + " needs a value: --" + key + "=...");
      if (!one.flags.emplace(key, flag.substr(equals + 1)).second)
        return wrong(one.line, name + " --" + key + " twice");
      rest = trim(rest.substr(end));
    }
    return {};
  }

  Result<void> read_words(const std::string& name, std::string_view rest, Instruction& one) const {
    switch (one.kind) {
      case Kind::run:
      case Kind::entrypoint:
      case Kind::cmd:
        if (has_heredoc(rest) && !list_from(rest))
          return wrong(one.line, "here-documents (<<) are not supported");
        return read_program(name, rest, one);
      case Kind::shell:
        TRY(read_program(name, rest, one));
        if (one.is_list) return {};
        return wrong(one.line, "SHELL is written as a list: SHELL [\"/bin/sh\", \"-c\"]");
      case Kind::copy:
      case Kind::add:
        return read_copy(name, rest, one);
      case Kind::env:
      case Kind::label:
      case Kind::arg:
        return read_pairs(name, rest, one);
      case Kind::workdir:
      case Kind::user:
      case Kind::expose:
        break;
    }
    one.words = TRY(words_of(one.line, rest));
    if (one.kind == Kind::user && one.words.size() != 1) return wrong(one.line, "USER takes one word");
    // A path may have blanks in it.
    if (one.kind == Kind::workdir) one.words = {std::string(rest)};
    return {};
  }

  Result<void> read_program(const std::string& name, std::string_view rest, Instruction& one) const {
    auto list = list_from(rest);
    one.is_list = list.has_value();
    if (list && list->empty() && one.kind != Kind::cmd && one.kind != Kind::entrypoint)
      return wrong(one.line, name + " needs at least one word in its list");
    if (list && list->size() > kMostWords) return wrong(one.line, "more than 1,000 words");
    one.words = list ? std::move(*list) : std::vector<std::string>{std::string(rest)};
    for (const std::string& word : one.words) {
      if (word.find('\0') != word.npos) return wrong(one.line, "a word has a NUL in it");
    }
    return {};
  }

  Result<void> read_copy(const std::string& name, std::string_view rest, Instruction& one) const {
    auto list = list_from(rest);
    one.is_list = list.has_value();
    one.words = list ? std::move(*list) : TRY(words_of(one.line, rest));
    if (one.words.size() > kMostWords) return wrong(one.line, "more than 1,000 words");
    if (one.words.size() < 2) return wrong(one.line, name + " needs a source and a target");
    for (const std::string& word : one.words) {
      if (word.empty() || word.find('\0') != word.npos)
        return wrong(one.line, "a path is empty or has a NUL");
      if (word.starts_with("<<")) return wrong(one.line, "here-documents (<<) are not supported");
    }
    if (one.kind != Kind::add) return {};
    for (size_t i = 0; i + 1 < one.words.size(); ++i) {
      std::string source = lower(one.words[i]);
      if (source.find("://") != source.npos || source.starts_with("git@"))
        return wrong(one.line, "ADD of a URL is not supported; fetch it with RUN, or COPY a file");
    }
    return {};
  }

  Result<void> read_pairs(const std::string& name, std::string_view rest, Instruction& one) const {
    auto words = TRY(words_of(one.line, rest));
    // ENV NAME value, the older form: everything behind the name.
    bool older = one.kind != Kind::arg && words[0].find('=') == words[0].npos;
    if (older) {
      if (words.size() < 2) return wrong(one.line, name + " needs a value: " + name + " NAME=value");
      one.pairs.emplace_back(words[0], std::string(trim(rest.substr(words[0].size()))));
    }
    for (size_t i = 0; !older && i < words.size(); ++i) {
      size_t equals = words[i].find('=');
      if (equals == words[i].npos && one.kind != Kind::arg)
        return wrong(one.line, name + " is written " + name + " NAME=value NAME=value");
      std::optional<std::string> value;
      if (equals != words[i].npos) value = words[i].substr(equals + 1);
      one.pairs.emplace_back(words[i].substr(0, equals), std::move(value));
    }
    for (const auto& [key, value] : one.pairs) {
      if (key.empty()) return wrong(one.line, name + " without a name");
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 0;
  Dockerfile file_;
};

}  // namespace

Result<Dockerfile> parse_dockerfile(std::string_view text) { return Parser(text).parse(); }

}  // namespace osb::cli
