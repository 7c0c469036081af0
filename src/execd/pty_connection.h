#pragma once

// One client of a PTY session: the WebSocket side.
//
//   to the client    binary 0x01 + bytes (output), 0x02 + bytes (standard error, pipes only), 0x03 + offset +
//   bytes (replay)
//                    text   {"type":"connected"|"exit"|"pong"|"taken"|"error",...} and a line feed
//   from the client  binary 0x00 + bytes (input)
//                    text   {"type":"stdin"|"eof"|"resize"|"signal"|"ping",...}

#include "execd/pty_session.h"
#include "http/message.h"
#include "http/server.h"

namespace osb::execd {

struct PtyConnect {
  PtyMode mode = PtyMode::terminal;
  uint64_t since = 0;
  bool takeover = false;
  bool acknowledge = false;  // {"type":"taken","bytes":N} for input that the program has read
};
PtyConnect parse_pty_connect(const http::Query& query);

io::Task<> serve_pty(Core& core, std::shared_ptr<PtySession> session, PtyConnect wanted,
                     http::Request& request, http::ResponseWriter& response);

}  // namespace osb::execd
