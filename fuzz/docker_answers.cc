// What a Docker engine, or whoever stands behind its socket, answers, and what the original server keeps in
// files.
#include "check.h"
#include "docker/answers.h"
#include "docker/exec_frames.h"
#include "docker/original_notes.h"

using namespace osb;

// However it comes in pieces, the same comes out.
static std::string out_of_frames(std::string_view text, size_t piece) {
  docker::ExecFrames frames;
  std::string out;
  char into[16];
  while (true) {
    auto got = frames.take(into);
    if (!got) return out + "?";
    out.append(into, *got);
    if (*got == 0 && text.empty()) return frames.ended() ? out + "." : out;
    if (*got > 0) continue;
    frames.feed(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  constexpr size_t kMost = 2048;  // of a text that goes into a message
  if (auto version = docker::parse_version(text)) CHECK(version->engine.size() <= kMost);
  if (auto container = docker::parse_container(text))
    CHECK(!container->id.empty() && container->error.size() <= kMost && container->published.size() <= size);
  if (auto said = docker::parse_logs(text)) CHECK(said->size() <= size);
  std::string framed = out_of_frames(text, size + 1);
  CHECK(framed.size() <= size + 1 && framed == out_of_frames(text, 3));
  if (auto list = docker::parse_labels_of_list(text)) CHECK(list->size() <= size);
  if (auto list = docker::parse_container_list(text)) CHECK(list->size() <= size);
  if (auto names = docker::parse_runtimes(text)) CHECK(names->size() <= size);
  if (auto image = docker::parse_image(text)) CHECK(!image->id.empty());
  if (auto list = docker::parse_image_list(text)) CHECK(list->size() <= size);
  if (auto volume = docker::parse_volume(text)) CHECK(!volume->name.empty());
  if (auto list = docker::parse_volume_list(text)) CHECK(list->size() <= size);
  if (auto list = docker::parse_changes(text)) {
    for (const auto& change : *list) CHECK(change.path.starts_with('/'));
  }
  if (auto event = docker::parse_event(text))
    CHECK(event->labels.size() <= size &&
          (event->kind == docker::EngineEvent::Kind::other || !event->container.empty()));
  if (auto id = docker::parse_created(text)) CHECK(!id->empty());
  (void)docker::parse_wait(text);
  CHECK(docker::parse_error(text, 500).size() <= kMost);
  if (auto count = docker::parse_processors(text)) CHECK(*count > 0);
  if (auto line = docker::parse_pull_line(text))
    CHECK(line->error.size() + line->text.size() + line->id.size() + line->status.size() <= 4 * kMost);
  if (auto version = docker::parse_api_version(text))
    CHECK(docker::parse_api_version(docker::to_string(*version)) == version);
  auto note = docker::parse_note(text, text);
  if (auto back = docker::parse_notes(docker::print_notes({{"id", note}})))
    CHECK(back->at("id").metadata == note.metadata && back->at("id").expires == note.expires);
  else
    CHECK(false);
  if (auto notes = docker::parse_notes(text)) CHECK(notes->size() <= size);
  return 0;
}
