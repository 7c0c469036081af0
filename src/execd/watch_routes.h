#pragma once

// GET /files/watch?path=P[&recursive=true]: changes of a file or directory as they happen, as an event stream
// in the framing of commands.
//
//   {"type":"ready","path":"/p","timestamp":...}       from here on nothing is missed
//   {"type":"created","path":"/p/f","directory":false,"timestamp":...}
//   types: created, modified, deleted, moved_from, moved_to, attributes; overflow when events were lost; ping

#include "execd/core.h"
#include "http/router.h"

namespace osb::execd {

void add_watch_route(http::Router& router, Core& core);

}  // namespace osb::execd
