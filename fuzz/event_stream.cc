// What a server sends to osb while a command or a cell runs: the same events in whatever pieces it arrives,
// and every end has an exit status. Also the lines that a user types, of which cells are made. The first byte
// is the size of the pieces.
#include "cli/event_stream.h"

#include "check.h"
#include "cli/cell_reader.h"
#include "server/cell_result.h"

using namespace osb;
using namespace osb::cli;

namespace {

std::string read_events(std::string_view bytes, size_t piece, EventParser::Source source) {
  EventParser parser(source);
  std::string log;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    auto events = parser.feed(bytes.substr(at, piece));
    if (!events) {
      CHECK(events.error().code == Code::corrupt || events.error().code == Code::too_large);
      return log + "error";
    }
    for (const StreamEvent& event : *events) {
      log += std::to_string(static_cast<int>(event.kind)) + event.text + event.detail + event.name + "\n";
      CommandEnd end = end_from(event, std::chrono::seconds(1), std::chrono::seconds(1));
      CHECK(end.status >= 0 && end.status <= 255);
    }
  }
  return log;
}

std::string collect(std::string_view bytes, size_t piece) {
  server::CellResult result;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    if (auto fed = result.feed(bytes.substr(at, piece)); !fed) return "error";
  }
  return result.to_json();
}

void read_cells(std::string_view text, std::string language) {
  CellReader reader(std::move(language));
  size_t taken = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size() - 1);
    if (auto cell = reader.feed(text.substr(0, end))) taken += cell->size();
    text.remove_prefix(end + 1);
  }
  if (auto cell = reader.finish()) taken += cell->size();
  CHECK(!reader.within());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (size < 1) return 0;
  std::string_view bytes = fuzz::text_of(data, size).substr(1);
  size_t piece = 1 + data[0];
  for (auto source : {EventParser::Source::command, EventParser::Source::cell}) {
    std::string whole = read_events(bytes, bytes.size() + 1, source),
                pieces = read_events(bytes, piece, source);
    // Events before a broken line may be lost with it when all of it comes at once.
    CHECK(pieces == whole || (whole.ends_with("error") && pieces.ends_with("error")));
  }
  CHECK(collect(bytes, piece) == collect(bytes, bytes.size() + 1));
  for (const char* language : {"python", "bash", "javascript"}) read_cells(bytes, language);
  return 0;
}
