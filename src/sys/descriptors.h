#pragma once

// Descriptors that travel between processes, in one message with some bytes (unix(7), SCM_RIGHTS).

#include <span>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace osb::sys {

// In one message; receivers here take no more.
inline constexpr size_t kMostDescriptors = 16;

// 0 or -errno. Allocates nothing. `flags` as sendmsg has them; no signal comes when the peer is gone.
int send_with_descriptors(int socket, std::string_view bytes, std::span<const int> descriptors,
                          int flags = 0);

// How many bytes came; 0: the peer is gone. Code::too_large for a message that does not fit whole: its
// descriptors are closed.
Result<size_t> receive_with_descriptors(int socket, std::span<char> bytes, std::vector<Fd>& descriptors,
                                        int flags = 0);

}  // namespace osb::sys
