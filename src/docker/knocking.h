#pragma once

// The server's side of base/knock.h.

#include <string>

#include "base/knock.h"
#include "io/socket.h"
#include "io/stream.h"

namespace osb::docker {

// A connection to the execd that has this secret. Code::unavailable: nobody listens there, or nobody on the
// port that was wished for; Code::corrupt: whoever does is somebody else.
io::Task<Result<io::Socket>> knock_at(std::string address, uint16_t port, std::string secret,
                                      knock::Wish wish);
// On a connection that is open: whether it is now what was wished for. Code::unavailable: it broke, or there
// is somebody who says why there is no execd.
io::Task<Result<bool>> knock_on(io::ForeignStream& stream, std::string secret, knock::Wish wish);
// Of an execd that let nobody through.
Error nobody_at(knock::Wish wish);

}  // namespace osb::docker
