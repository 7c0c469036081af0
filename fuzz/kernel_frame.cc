// What a kernel sends: frames come out the same in whatever pieces they arrive, nothing longer than allowed
// is waited for, and every frame that is taken for a message can be shown. The first byte is the size of the
// pieces.
#include "base/frame.h"
#include "check.h"
#include "interpreter/code_events.h"
#include "interpreter/kernel_message.h"
#include "interpreter/output_text.h"
#include "json/decode.h"

using namespace osb;
using namespace osb::interpreter;

namespace {

std::string read_frames(std::string_view bytes, size_t piece) {
  FrameReader reader(kMaxFrame);
  std::string log;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    reader.feed(bytes.substr(at, piece));
    while (true) {
      auto frame = reader.next();
      if (!frame) return log + "error";
      if (!*frame) break;
      CHECK((*frame)->size() <= kMaxFrame);
      log += "frame " + **frame + "\n";
    }
  }
  return log;
}

void show(std::string_view json) {
  auto message = parse_message(json);
  if (!message) return;
  std::string events;
  append_result(events, message->data, 1);
  CHECK(events.ends_with("\n\n") && events.find('\n') == events.size() - 2);
  CHECK(json::parse(std::string_view(events).substr(0, events.size() - 2)));
  events.clear();
  append_code_error(events, message->ename, message->evalue, message->traceback, 1);
  CHECK(events.ends_with("\n\n") && events.find('\n') == events.size() - 2);
  CHECK(json::parse(std::string_view(events).substr(0, events.size() - 2)));
  CHECK(json::parse(encode_run(message->id, message->evalue)));
}

void split_output(std::string_view bytes, size_t piece) {
  OutputText text;
  std::string joined;
  auto emit = [&](std::string_view part) {
    CHECK(!part.empty() && part.size() <= OutputText::kMaxText);
    joined += part;
  };
  for (size_t at = 0; at < bytes.size(); at += piece) {
    text.feed(bytes.substr(at, piece), emit);
    if (at % 3 == 0) text.take_rest(OutputText::More::may_come, emit);
  }
  text.take_rest(OutputText::More::none, emit);
  CHECK(joined == bytes && !text.waiting());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 1) return 0;
  std::string_view bytes = fuzz::text_of(data, size).substr(1);
  size_t piece = 1 + data[0];
  CHECK(read_frames(bytes, piece) == read_frames(bytes, bytes.size() + 1));
  show(bytes);
  if (bytes.size() >= 4) show(bytes.substr(4));
  split_output(bytes, piece);
  return 0;
}
