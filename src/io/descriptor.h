#pragma once

// Descriptors of other kinds than sockets (pipes, pidfds, terminals) in a loop.

#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/fd.h"

namespace osb::io {

// Gives a descriptor to the loop of `to`. One that the loop cannot take (it needs memory and room of its own)
// closes. An invalid one is the error of the call that was to make it.
Result<void> assign(boost::asio::posix::stream_descriptor& to, Fd fd);

}  // namespace osb::io
