#pragma once

// The bodies of messages. Every struct of this folder writes itself to bytes and reads itself from them:
//
//   void write(ByteWriter& out) const;
//   void read(ByteReader& in);         // what is wrong makes the reader fail
//
// A request also names its verb and its answer. What a request means is said beside it; what of it is refused
// is in docs/launcher-protocol.md.

#include <string>
#include <string_view>

#include "base/error.h"
#include "launcher/bytes.h"
#include "launcher/messages/verb.h"

namespace osb::launcher {

// Ids are UUIDs (check_id); longer ones are not even read.
inline constexpr size_t kMaxIdBytes = 64;

template <class Body>
std::string encode_body(const Body& body) {
  ByteWriter out;
  body.write(out);
  return out.take();
}

// Code::corrupt unless it is all of it and nothing more.
template <class Body>
Result<Body> decode_body(std::string_view bytes) {
  ByteReader in(bytes);
  Body body;
  body.read(in);
  if (!in.complete()) return fail(Code::corrupt, std::string(Body::kName) + ": truncated, too long or wrong");
  return body;
}

// Most requests are an id and nothing else. It has no length in front: it is the whole body.
struct IdBody {
  std::string id;
  void write(ByteWriter& out) const { out.rest(id); }
  void read(ByteReader& in) { id = in.rest(kMaxIdBytes); }
};

// Most answers say that it is done, and nothing else.
struct Done {
  static constexpr std::string_view kName = "an empty answer";
  static constexpr size_t kDescriptors = 0;  // how many come with it, at least
  void write(ByteWriter&) const {}
  void read(ByteReader&) {}
};

}  // namespace osb::launcher
