#pragma once

// Follows what a client sends on a plain HTTP connection from request to request, so that each of them can be
// looked at before a byte of it leaves. Fails closed: what the strict parser of http/ does not understand, or
// what it and a server might understand differently, is refused.

#include <string>
#include <string_view>

#include "http/body_decoder.h"

namespace osb::egress {

class RequestFollower {
 public:
  struct Next {
    enum class Kind {
      more,     // a head that is not whole yet
      head,     // of a request, for `host`, which is empty when it names none
      body,     // bytes that belong to the request before
      refused,  // nothing that may leave
    } kind = Kind::more;
    size_t size = 0;  // bytes at the front that it consists of
    std::string host = {};
    // What makes the rest of the connection something else than HTTP, when the server's first answer begins
    // with this; empty: nothing does. Only the first request can: the answer to a later one is not told from
    // others.
    std::string_view tunnel_answer = {};
  };

  // `bytes`, of which there is at least one, begin where the last one ended.
  Next next(std::string_view bytes);

 private:
  Next head(std::string_view bytes);

  http::BodyDecoder body_;
  size_t scanned_ = 0;
  bool is_first_ = true;
};

}  // namespace osb::egress
