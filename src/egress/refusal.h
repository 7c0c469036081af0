#pragma once

// How a connection that may not be made, or could not, is ended: at once, and in words where the protocol has
// room for some.

#include <string>

#include "egress/client_hello.h"
#include "io/socket.h"

namespace osb::egress {

// What the other side may understand: an HTTP answer, a TLS alert, or nothing.
std::string last_words_for(Spoken::Kind spoken, const std::string& why, int status);

// Waits for the client's first words only where its protocol lets it speak first, and not for long.
io::Task<> close_with(io::Socket client, std::string why, uint16_t port, int status);

// For whoever reads the answer of a request that could not be passed on.
std::string failure_text(const Error& error, const std::string& name, const std::string& address,
                         uint16_t port);

}  // namespace osb::egress
