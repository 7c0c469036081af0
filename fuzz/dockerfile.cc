// A Dockerfile and a .dockerignore, as somebody else may have written them; words are expanded, too.

#include "cli/dockerfile.h"
#include "check.h"
#include "cli/build_stage.h"
#include "cli/path_pattern.h"

using namespace osb;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  auto ignored = cli::IgnoreList::parse(text);
  if (ignored) (void)ignored->ignores(text.substr(0, 200));
  std::string clean = cli::clean_path(text);
  CHECK(clean != ".." && !clean.starts_with("../") && clean.find("/../") == clean.npos);
  CHECK(!clean.starts_with('/'));
  auto file = cli::parse_dockerfile(text);
  if (!file) return 0;
  CHECK(!file->stages.empty());
  cli::BuildArguments arguments;
  if (!cli::read_global_arguments(*file, arguments)) return 0;
  for (const cli::Stage& stage : file->stages) {
    CHECK(!stage.base.empty() && stage.line > 0);
    cli::BuildStage state;
    for (const cli::Instruction& one : stage.instructions) {
      using Kind = cli::Instruction::Kind;
      CHECK(one.line > 0);
      if (one.kind == Kind::copy || one.kind == Kind::add) {
        CHECK(one.words.size() >= 2);
        for (const std::string& word : one.words) (void)cli::expand(word, file->escape, state.lookup());
      } else if (one.kind != Kind::run) {
        if (!cli::apply(one, file->escape, arguments, state)) break;
        CHECK(state.workdir.starts_with('/'));
      }
    }
    (void)state.config();
  }
  return 0;
}
