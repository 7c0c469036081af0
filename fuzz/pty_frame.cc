// Text frames of a terminal's client: whatever arrives, only what means something is acted upon.
#include "execd/pty_frame.h"

#include <signal.h>

#include "check.h"

using namespace osb::execd;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  std::string_view text = osb::fuzz::text_of(data, size);
  pty::Frame frame = pty::parse_text_frame(text);
  if (auto* resize = std::get_if<pty::Resize>(&frame))
    CHECK(resize->size.columns > 0 && resize->size.rows > 0);
  if (auto* signal = std::get_if<pty::Signal>(&frame)) {
    int n = signal->number;
    CHECK(n == SIGINT || n == SIGTERM || n == SIGKILL || n == SIGQUIT || n == SIGHUP);
  }
  if (auto* input = std::get_if<pty::Input>(&frame)) CHECK(input->bytes.size() <= size);
  if (auto* unknown = std::get_if<pty::Unknown>(&frame)) CHECK(unknown->type.size() <= size);
  return 0;
}
