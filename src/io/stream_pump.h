#pragma once

// What joins a stream that is no socket to one half of a socket pair: see io/stream.h. Whoever has the other
// half finds the end only when the stream has told its own; whatever else ends it is a break
// (io/stream_end.h).

#include "io/stream.h"

namespace osb::io {

// Ends with either side. A half that was closed, and not only shut, is noticed although nobody takes what it
// has said before: that has so long to get on.
Task<> pump(Executor executor, std::unique_ptr<ForeignStream> foreign, Socket half, Duration patience);

}  // namespace osb::io
